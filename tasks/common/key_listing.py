"""The keys of a recipe as help on a terminal. Without paddle."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any, NamedTuple

from tasks.common.training.arguments import EncoderArguments, RecipeArguments
from tasks.common.training.paddlenlp_keys import DOCUMENTED, usable_keys

WIDTH = 110
_DEFAULT_WIDTH = 13
REQUIRED = ...  # in place of the default of a key that must be given


class Row(NamedTuple):
    key: str
    default: Any
    help: str


def own_rows(arguments_class: type[EncoderArguments]) -> list[Row]:
    """The keys that a recipe does not share with all others, or to which it gives another default or meaning."""
    shared = _shared(arguments_class)
    return [row for row in _rows(arguments_class) if row.key not in shared]


def shared_rows(arguments_class: type[EncoderArguments]) -> list[Row]:
    """The keys that it shares."""
    shared = _shared(arguments_class)
    return [row for row in _rows(arguments_class) if row.key in shared]


def training_rows(arguments_class: type[EncoderArguments]) -> list[Row]:
    """The keys of PaddleNLP that do something in it."""
    required = arguments_class.REQUIRED
    return [
        Row(name, REQUIRED if name in required else default, DOCUMENTED[name].metadata["help"])
        for name, default in usable_keys(arguments_class).items()
    ]


def listing(recipe: str, arguments_class: type[EncoderArguments]) -> str:
    """All keys with default, meaning and unit: the recipe's own, those that recipes share, PaddleNLP's."""
    groups = {
        f"Keys of {recipe}": own_rows(arguments_class),
        "Keys that recipes share": shared_rows(arguments_class),
        "Keys of PaddleNLP's TrainingArguments that are documented; it takes others": training_rows(arguments_class),
    }
    width = max(len(row.key) for rows in groups.values() for row in rows)
    lines = ["Columns: key, default (- for none), meaning.\n"]
    for title, rows in groups.items():
        lines.append(f"{title}:")
        for row in sorted(rows, key=lambda row: row.default is not REQUIRED):
            lines += _lines(row, width)
        lines.append("")
    return "\n".join(lines).rstrip()


def as_yaml(value: Any) -> str:
    """A default as a configuration file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lines(row, width):
    default = "required" if row.default is REQUIRED else "-" if row.default in (None, "") else as_yaml(row.default)
    head = f"  {row.key:{width}}  {default:{_DEFAULT_WIDTH}}  "
    indent = " " * len(f"  {'':{width}}  {'':{_DEFAULT_WIDTH}}  ")
    meaning = row.help.replace("`", "")
    return textwrap.wrap(
        head + meaning, WIDTH, subsequent_indent=indent, drop_whitespace=True,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _rows(arguments_class):
    unused = arguments_class.unused_keys(arguments_class(**{}))
    return [
        Row(one.name, REQUIRED if one.name in arguments_class.REQUIRED else one.default, one.metadata["help"])
        for one in dataclasses.fields(arguments_class)
        if one.name not in unused
    ]


def _shared(arguments_class):
    """Names of the fields that are the very ones of a base class of all recipes."""
    bases = {**EncoderArguments.__dataclass_fields__}
    if issubclass(arguments_class, RecipeArguments):
        bases.update(RecipeArguments.__dataclass_fields__)
    fields = arguments_class.__dataclass_fields__
    return {name for name, one in fields.items() if bases.get(name) is one}
