"""Write the tables of configuration keys in docs/ from the argument definitions: python -m tests.document_keys

A table stands between ``<!-- keys: NAME -->`` and ``<!-- end of keys -->``. NAME is a recipe, for the keys that it does
not share with all others, or ``shared``. English meanings are the help texts, Chinese ones are in docs/keys.zh.yaml,
there also under the name of the recipe alone that has another meaning for a key.
"""

import dataclasses
import re
from pathlib import Path

import yaml
from paddlenlp.trainer import TrainingArguments

from tasks.classification.arguments import ClassificationArguments
from tasks.common.training.arguments import TRAINING_DEFAULTS, EncoderArguments
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments
from tasks.pretraining.arguments import BY_STAGES, PretrainingArguments

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
HEADS = {"en": ("key", "default", "meaning", "required"), "zh": ("键", "默认值", "含义", "必填")}

# NAME -> (keys of the recipe, its own defaults of PaddleNLP's keys)
RECIPES = {
    "ner": (NerArguments, NerArguments.DEFAULTS),
    "matching": (MatchingArguments, MatchingArguments.DEFAULTS),
    "classification": (ClassificationArguments, ClassificationArguments.DEFAULTS),
    "pretraining": (PretrainingArguments, {"save_steps": BY_STAGES.defaults["save_steps"]}),
}
# Keys of PaddleNLP's TrainingArguments that a user may want to set.
PADDLENLP_HELP = {
    "output_dir": "folder of the run; must be new",
    "device": "`cpu`, `gpu`, `gpu:1`, ...; empty: a GPU if there is one",
    "seed": "seed of the initial weights, the order of the data, and dropout",
    "num_train_epochs": "passes through the training data",
    "per_device_train_batch_size": "examples per batch and process",
    "per_device_eval_batch_size": "the same in evaluation",
    "gradient_accumulation_steps": "batches per optimizer step, for larger batches than memory holds",
    "learning_rate": "peak learning rate of AdamW, reached after the warm-up",
    "lr_scheduler_type": "`linear`, `cosine`, `constant_with_warmup`, or `constant`, which has no warm-up",
    "warmup_ratio": "share of the steps in which the learning rate rises from 0",
    "weight_decay": "weight decay of AdamW",
    "max_grad_norm": "longer gradients are scaled down to this norm",
    "recompute": "recompute the layers in the backward pass: less memory, more time",
    "bf16": "bfloat16 mixed precision on a GPU (untested: nothing here has run on one)",
    "fp16": "float16 mixed precision on a GPU (untested as well)",
    "logging_steps": "optimizer steps between two values of the loss in the log",
    "save_steps": "optimizer steps between two checkpoints",
}


def keys_of(name):
    """The rows of a table: list of (key, default, English meaning); the default is ``...`` for a required key."""
    if name == "shared":
        arguments, others = NerArguments, [key for key in PADDLENLP_HELP if key != "save_steps"]
        defaults = {key: _paddlenlp_default(key) for key in others}
    else:
        arguments, defaults = RECIPES[name]
        others = list(defaults)
    shared = vars(EncoderArguments)["__dataclass_fields__"]
    fields = [one for one in dataclasses.fields(arguments) if (shared.get(one.name) is one) == (name == "shared")]
    rows = [(one.name, ... if one.name in arguments.REQUIRED else one.default, one.metadata["help"]) for one in fields]
    rows += [(key, defaults[key], PADDLENLP_HELP[key]) for key in others]
    return sorted(rows, key=lambda row: row[1] is not ...)  # required keys first


def _paddlenlp_default(key):
    if key in EncoderArguments.REQUIRED:
        return ...
    default = TrainingArguments.__dataclass_fields__[key].default
    return None if key == "device" else TRAINING_DEFAULTS.get(key, default)


def table(name, language, meanings=None):
    """A table in Markdown; ``meanings`` from key to meaning stand for the English ones."""
    *heads, required = HEADS[language]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|"]
    for key, default, meaning in keys_of(name):
        shown = required if default is ... else "" if default is None else f"`{_as_yaml(default)}`"
        lines.append(f"| `{key}` | {shown} | {meanings[key] if meanings else meaning} |")
    return "\n".join(lines) + "\n"


def with_tables(page):
    """The text of a page with its tables renewed."""
    chinese = page.name.endswith(".zh.md")
    meanings = yaml.safe_load((DOCS / "keys.zh.yaml").read_text(encoding="utf-8")) if chinese else None

    def renewed(match):
        own = {**meanings, **meanings.get(match[2], {})} if chinese else None
        return match[1] + table(match[2], "zh" if chinese else "en", own) + match[3]

    return TABLE.sub(renewed, page.read_text(encoding="utf-8"))


def _as_yaml(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(with_tables(page), encoding="utf-8")
