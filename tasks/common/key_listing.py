"""The keys of a recipe as help on a terminal. Without paddle."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Any, NamedTuple

from tasks.common.training.arguments import EncoderArguments, RecipeArguments
from tasks.common.training.settings import DOCUMENTED, usable_keys

WIDTH = 110
REQUIRED = ...  # in place of the default of a key that must be given


class Row(NamedTuple):
    key: str
    default: Any
    help: str


def listing(recipe: str, arguments_class: type[EncoderArguments]) -> str:
    """All keys with default, meaning and unit: first the recipe's, then the shared ones, then PaddleNLP's."""
    bases = {**EncoderArguments.__dataclass_fields__}
    if issubclass(arguments_class, RecipeArguments):
        bases.update(RecipeArguments.__dataclass_fields__)
    unused = arguments_class.unused_keys(arguments_class(**{}))
    own, shared = [], []
    for one in dataclasses.fields(arguments_class):
        if one.name not in unused:  # a field is shared if it is the very one of a base of all recipes
            (shared if bases.get(one.name) is one else own).append(Row(one.name, one.default, one.metadata["help"]))
    others = usable_keys(arguments_class).items()
    groups = {
        f"Keys of {recipe}": own,
        "Keys that recipes share": shared,
        "Keys of PaddleNLP's TrainingArguments that are documented; it takes others": [
            Row(name, default, DOCUMENTED[name].metadata["help"]) for name, default in others
        ],
    }
    width = max(len(row.key) for rows in groups.values() for row in rows)
    lines = ["Columns: key, default (- for none), meaning."]
    for title, rows in groups.items():
        lines += ["", f"{title}:"]
        for row in sorted(rows, key=lambda row: row.key not in arguments_class.REQUIRED):
            is_required = row.key in arguments_class.REQUIRED
            default = "required" if is_required else "-" if row.default in (None, "") else as_yaml(row.default)
            head = f"  {row.key:{width}}  {default:13}  "
            meaning = head + row.help.replace("`", "")
            lines += textwrap.wrap(meaning, WIDTH, subsequent_indent=" " * (width + 19), break_on_hyphens=False)
    return "\n".join(lines)


def as_yaml(value: Any) -> str:
    """A default as a configuration file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
