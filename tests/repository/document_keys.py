"""Write the tables of configuration keys in docs/ from the argument definitions.

    python -m tests.repository.document_keys

A table stands between ``<!-- keys: NAME -->`` and ``<!-- end of keys -->``. NAME is a recipe, for the keys that it does
not share with all others; ``shared``; or a configuration, for the options that it adds to its base. English meanings
are the help texts, Chinese ones are in docs/keys.zh.yaml, there also under the name of the recipe alone that has
another meaning for a key.
"""

import dataclasses
import re
from pathlib import Path

import yaml

from paddle_rope.roformer import RoFormerConfig, SequenceClassificationConfig
from tasks.classification.arguments import ClassificationArguments
from tasks.commands.train import REQUIRED, Row, as_yaml
from tasks.common.training.arguments import EncoderArguments
from tasks.common.training.settings import DOCUMENTED, usable_keys
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments
from tasks.pretraining.arguments import BY_STAGES, PretrainingArguments

DOCS = Path(__file__).resolve().parents[2] / "docs"
TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
HEADS = {"en": ("key", "default", "meaning", "required"), "zh": ("键", "默认值", "含义", "必填")}

# NAME -> (keys of the recipe, its own defaults of PaddleNLP's keys)
RECIPES = {
    "ner": (NerArguments, NerArguments.DEFAULTS),
    "matching": (MatchingArguments, MatchingArguments.DEFAULTS),
    "classification": (ClassificationArguments, ClassificationArguments.DEFAULTS),
    "pretraining": (PretrainingArguments, {"save_steps": BY_STAGES.defaults["save_steps"]}),
}
CONFIGURATIONS = {one.__name__: one for one in (RoFormerConfig, SequenceClassificationConfig)}


def keys_of(name):
    """The rows of a table, the keys that must be given first."""
    if name in CONFIGURATIONS:
        configuration = CONFIGURATIONS[name]
        own = [one for one in dataclasses.fields(configuration) if one.name not in configuration.__base__.names()]
        return [Row(one.name, one.default, one.metadata["help"]) for one in own]
    if name == "shared":
        arguments = NerArguments
        others = usable_keys(arguments)
    else:
        arguments, others = RECIPES[name]
    shared = vars(EncoderArguments)["__dataclass_fields__"]
    fields = [one for one in dataclasses.fields(arguments) if (shared.get(one.name) is one) == (name == "shared")]
    rows = [Row(one.name, one.default, one.metadata["help"]) for one in fields]
    rows += [Row(key, default, DOCUMENTED[key].metadata["help"]) for key, default in others.items()]
    rows = [row._replace(default=REQUIRED) if row.key in arguments.REQUIRED else row for row in rows]
    return sorted(rows, key=lambda row: row.default is not REQUIRED)


def table(name, language, meanings=None):
    """A table in Markdown; ``meanings`` from key to meaning stand for the English ones."""
    *heads, required = HEADS[language]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|"]
    for key, default, meaning in keys_of(name):
        shown = required if default is REQUIRED else "" if default is None else f"`{as_yaml(default)}`"
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


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(with_tables(page), encoding="utf-8")
