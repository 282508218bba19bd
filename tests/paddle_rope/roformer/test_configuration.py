"""Configurations: values that are refused, files of other models, saving."""

import copy
import inspect
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import yaml

from paddle_rope import RoFormerConfig, RotaryPositionEmbedding
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from paddle_rope.roformer.config import ROTARY_DEFAULTS
from paddle_rope.tasks.ner.model import NerConfig

REFUSED = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))["configuration"]
REFUSED += [({"rotary": {"scaling": {"type": "linear", "factor": 10**309}}}, "rotary scaling factor must be a number")]


@pytest.mark.parametrize("wrong, message", REFUSED, ids=str)
def test_a_wrong_value_is_an_error_that_names_it(wrong, message):
    with pytest.raises(ValueError, match=message):
        SequenceClassificationConfig(**wrong)


# of every option a value that is not its default, some as numbers of numpy
CHANGED = {
    "vocab_size": np.int64(31), "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 17, "attention": ["linear", "softmax"], "attention_window": 3, "embedding_size": 128,
    "type_vocab_size": 2, "version": 2, "hidden_act": "relu", "causal": True, "position_embedding": "qkvo",
    "rotary": {"layout": "half", "rotary_dim": 4, "scaling": {"type": "ntk", "factor": np.int32(4)}, "learned": True},
    "learned_positions": 64, "share_kv": True, "num_key_value_heads": 2, "feature_map": "favor", "normalizer": "none",
    "decay": (0.9, 0.5, 1.0, 1), "convolutions": True, "output_gate": True, "hidden_dropout_prob": 0.25,
    "embedding_dropout_prob": 0.75, "attention_probs_dropout_prob": 0.5, "layer_norm_eps": 1e-6, "pad_token_id": 5,
    "pooling": "mean", "classifier_activation": "gelu", "id2label": {0: "bad", 1: "fair", 2: "好"},
}  # fmt: skip


def test_every_value_is_saved_and_loaded_and_classes_have_their_number(tmp_path):
    given, default = copy.deepcopy(CHANGED), asdict(SequenceClassificationConfig())
    config = SequenceClassificationConfig(**given)
    given["rotary"]["scaling"]["factor"] = 1  # which is the caller's alone
    assert config.rotary == CHANGED["rotary"]
    assert not [name for name, value in asdict(config).items() if value == default[name]]
    config.save_pretrained(tmp_path / "new")
    assert SequenceClassificationConfig.from_pretrained(str(tmp_path / "new")) == config
    assert default["id2label"] == {0: "LABEL_0", 1: "LABEL_1"}
    assert config.num_labels == 3
    with pytest.raises(TypeError, match="takes a SequenceClassificationConfig, got RoFormerConfig"):
        RoFormerForSequenceClassification(RoFormerConfig())


def test_the_defaults_of_rotary_are_those_of_the_rotation():
    parameters = inspect.signature(RotaryPositionEmbedding).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    assert {**defaults, "window_base": None} == ROTARY_DEFAULTS


# ---- settings of files
def test_options_of_another_kind_of_model_are_ignored_and_misspelled_ones_are_not():
    sizes = {"hidden_size": 24, "num_attention_heads": 2}
    ner = {"model_type": NerConfig.model_type, **asdict(NerConfig(types=["place"], **sizes))}
    assert RoFormerConfig.from_dict(ner) == RoFormerConfig(**sizes)
    encoder = {"model_type": RoFormerConfig.model_type, **asdict(RoFormerConfig(**sizes))}
    assert NerConfig.from_dict({**ner, "architectures": ["NerModel"]}) == NerConfig.from_dict(ner)
    for settings, read, name, nearest in (
        (encoder, RoFormerConfig, "atention", "attention"),
        (ner, RoFormerConfig, "atention", "attention"),
        (ner, NerConfig, "span_heads", "span_head"),
    ):
        with pytest.raises(ValueError, match=f"{read.__name__} has no option '{name}'; did you mean '{nearest}'"):
            read.from_dict({**settings, name: "linear"})


def test_changes_count_more_than_what_a_file_holds():
    settings = {"rotary": {"base": 500.0, "layout": "half"}}
    assert RoFormerConfig.from_dict(settings).rotary == settings["rotary"]
    assert RoFormerConfig.from_dict(settings, rotary=None).rotary is None
    for name, said in (("atention", "did you mean 'attention'"), ("xyz", "its options are .*vocab_size")):
        with pytest.raises(ValueError, match=f"RoFormerConfig has no option '{name}'; {said}"):
            RoFormerConfig.from_dict(settings, **{name: 9})
    named = {"id2label": {"0": "a", "1": "b", "2": "c"}}
    assert SequenceClassificationConfig.from_dict(named, num_labels=2) == SequenceClassificationConfig()
