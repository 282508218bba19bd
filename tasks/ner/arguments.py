"""Configuration keys of the NER recipe: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from paddle_rope.options import NOT_NEGATIVE, POSITIVE, Kind
from tasks.common.errors import InputError
from tasks.common.training.arguments import RecipeArguments, model_option, option
from tasks.ner.config import NerConfig
from tasks.ner.features import FEATURE_KINDS

OF_FEATURES = Kind(f"some of {', '.join(FEATURE_KINDS)}", set(FEATURE_KINDS).issuperset)


@dataclass
class NerArguments(RecipeArguments):
    """Keys of the NER recipe, in addition to the keys of every recipe."""

    METRIC = "f1"
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "features")
    RENAMED = {"max_length": "max_characters", "masked_lm_files": "texts"}

    recipe: str = option("ner", "what is trained")
    train_file: Optional[str] = option(None, "labeled data in any of the supported formats")
    train_texts: Optional[int] = option(
        None, "take so many texts of `train_file` only, drawn with the seed; empty: all", POSITIVE
    )
    max_characters: int = option(512, "longest training text in characters; a longer one is an error or cut", POSITIVE)
    cut_long_texts: bool = option(False, "cut longer training texts into windows of so many tokens")
    span_head: str = model_option(NerConfig, "span_head")
    head_size: int = model_option(NerConfig, "head_size")
    max_span_length: Optional[int] = model_option(NerConfig, "max_span_length")
    span_rope: bool = model_option(NerConfig, "span_rope")
    allow_overlap: Optional[bool] = option(None, "may entities overlap; empty: as in train")
    tune_thresholds: bool = option(False, "after training, choose a threshold for each type on dev")
    threshold_for_f1: bool = option(
        False, "after training, lower the threshold of all types to half of the dev F1, as a probability"
    )
    features: Optional[list[str]] = option(
        None, f"word features, separated by commas: {', '.join(FEATURE_KINDS)}", OF_FEATURES
    )
    character_dropout: float = model_option(NerConfig, "character_dropout")
    feature_dropout: float = model_option(NerConfig, "feature_dropout")
    masked_lm_epochs: int = option(0, "epochs of masked language modeling before", NOT_NEGATIVE)
    texts: Optional[list[str]] = option(
        None, "files of unlabeled texts for it, separated by commas: one text per line, or JSON Lines"
    )
    keep_types: bool = option(
        False, "keep the types of the NER model `pretrained`: of those not labeled here, it marks what it finds"
    )
    fit_to_data: bool = option(False, "choose by the size of the training data what is not given")

    def check(self, config):
        chosen = self.fit_to_data and "masked_lm_epochs" not in config
        if self.texts and not self.masked_lm_epochs and not chosen:
            raise InputError("configuration: texts without masked_lm_epochs; say how often they are to be seen")
        if self.keep_types and self.pretrained is None:
            raise InputError("configuration: keep_types without pretrained; give the model whose types are kept")
        self.check_dev("tune_thresholds")
        self.check_dev("threshold_for_f1")
        if self.tune_thresholds and self.threshold_for_f1:
            raise InputError("configuration: tune_thresholds and threshold_for_f1; give one of them")
