"""Configuration keys of pretraining, and its stages."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from paddle_rope.options import choice
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.training import arguments as common
from paddle_rope.tasks.common.training.arguments import CLOSED_BY_STEPS, FIXED_BY_STEPS, TrainingPlan

HIDDEN_SHARE = 0.15  # of the words, as in BERT (arXiv 1810.04805, appendix A.1)
SHORTEST = 8  # shorter rows have hardly a word between [CLS] and [SEP]

# Training is one pass through a list of batches, whose lengths and sizes come from the stages.
BY_STAGES = TrainingPlan(
    fixed={**FIXED_BY_STEPS, "save_strategy": "steps"},
    closed=(*CLOSED_BY_STEPS, "eval_steps", "max_steps", "per_device_train_batch_size"),
    reason="the stages give lengths, batch sizes and steps, each is evaluated at its end, the last weights are kept",
)


class Stage(NamedTuple):
    max_tokens: int  # per row
    batch_size: int  # rows per process
    steps: int  # updates of the weights


def parse_stages(value):
    """The list of :class:`Stage` that a configuration gives: mappings with ``max_tokens``, ``batch_size`` and
    ``steps``, or text such as ``512x8x1000,128x32x500``. Raises InputError for anything else."""
    if not value:
        raise InputError("no 'stages': give a list of max_tokens, batch_size and steps, such as --stages 512x8x1000")
    stages = []
    for number, given in enumerate(value if isinstance(value, list) else str(value).split(","), 1):
        numbers = str(given).strip().split("x")
        if isinstance(given, dict) and set(given) == set(Stage._fields):
            numbers = [str(given[key]) for key in Stage._fields]
        stage = Stage(*map(int, numbers)) if len(numbers) == 3 and all(map(str.isdecimal, numbers)) else None
        if stage is None or stage.max_tokens < SHORTEST or min(stage) < 1:
            form = f"{'x'.join(Stage._fields)} in numbers, max_tokens of {SHORTEST} or more, such as 512x8x1000"
            raise InputError(f"configuration: stage {number} of stages is {given!r}; write {form}")
        stages.append(stage)
    return stages


@dataclass
class PretrainingArguments(common.EncoderArguments):
    """Keys of a run, in addition to PaddleNLP's ``TrainingArguments``."""

    MODEL = "paddle_rope.roformer:RoFormerForMaskedLM"
    SCORES = ("loss", "accuracy")
    LENGTH_KEY = "stages"
    NEXT_STEP = "use it:   {command} train CONFIG.yaml --pretrained {model}"
    PLAN = BY_STAGES
    DEFAULTS = {"save_steps": 200}
    HYPER_PARAMETERS = (*common.EncoderArguments.HYPER_PARAMETERS, "stages", "tokenizer")

    recipe: str = common.option("pretraining", "what is trained")
    text_files: Optional[list[str]] = common.option(None, "files of documents, separated by commas")
    dev_fraction: float = common.option(
        0.02, "share of the documents held out for evaluation without `dev_files`", common.FRACTION
    )
    dev_files: Optional[list[str]] = common.option(None, "files of held-out documents, separated by commas")
    first_hidden_share: float = common.option(
        HIDDEN_SHARE,
        "share of the words that are hidden in the first batch; it falls evenly to 15 % in the last",
        common.FRACTION,
    )
    stages: Optional[list[Any]] = common.option(None, "tokens per row x rows per batch x steps of each")
    tokenizer: str = common.option("char", "`char` or `word`", choice("char", "word"))
    vocab_file: Optional[str] = common.option(None, "`vocab.txt`; empty: the characters of the texts")
    hidden_dropout_prob: float = common.of_encoder("hidden_dropout_prob")

    REQUIRED = ("text_files", "output_dir")
    SETTLED_BY_PRETRAINED = (*common.EncoderArguments.SETTLED_BY_PRETRAINED, "tokenizer", "vocab_file")

    def check(self, config):
        parse_stages(self.stages)
        if self.pretrained is None and self.tokenizer == "word" and self.vocab_file is None:
            hint = "give one, such as the Chinese RoFormer's"
            raise InputError(f"configuration: tokenizer word without vocab_file; {hint}")
        if self.vocab_file is not None and "vocab_min_count" in config:
            raise InputError("key 'vocab_min_count': vocab_file has the vocabulary; leave one of them out")

    def fixed_arguments(self):
        return {**super().fixed_arguments(), "max_steps": sum(stage.steps for stage in parse_stages(self.stages))}

    def unused_keys(self):
        return super().unused_keys() | ({"vocab_min_count"} if self.vocab_file is not None else set())
