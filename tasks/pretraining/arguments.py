"""Configuration keys of pretraining beside those of every recipe."""

from dataclasses import dataclass
from typing import Any, Optional

from paddle_rope.options import choice
from tasks.common.errors import InputError
from tasks.common.training import arguments as common
from tasks.common.training.arguments import CLOSED_BY_STEPS, FIXED_BY_STEPS, TrainingPlan
from tasks.pretraining.stages import parse_stages

TOKENIZERS = ("char", "word")

# One pass through a list of batches, whose lengths and sizes the stages give.
BY_STAGES = TrainingPlan(
    defaults={"save_steps": 200},
    fixed={**FIXED_BY_STEPS, "save_strategy": "steps"},
    closed=(*CLOSED_BY_STEPS, "eval_steps", "max_steps", "per_device_train_batch_size"),
    reason="the stages give lengths, batch sizes and steps, each is evaluated at its end, the last weights are kept",
)


@dataclass
class PretrainingArguments(common.EncoderArguments):
    """Configuration keys of a run, beside those of PaddleNLP's ``TrainingArguments``."""

    PLAN = BY_STAGES
    HYPER_PARAMETERS = (*common.EncoderArguments.HYPER_PARAMETERS, "stages", "tokenizer")

    recipe: str = common.option("pretraining", "what is trained")
    text_files: Optional[list[str]] = common.option(None, "files of documents, separated by commas")
    dev_fraction: float = common.option(0.02, "share of the documents held out for evaluation", common.FRACTION)
    stages: Optional[list[Any]] = common.option(None, "tokens per row x rows per batch x steps of each")
    tokenizer: str = common.option("char", "`char` or `word`", choice(*TOKENIZERS))
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
            raise InputError("key 'vocab_min_count': the vocabulary is that of vocab_file; leave one of them out")

    def unused_keys(self):
        return super().unused_keys() | ({"vocab_min_count"} if self.vocab_file is not None else set())
