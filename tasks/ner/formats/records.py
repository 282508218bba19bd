"""The records of a labeled file, whatever its form: JSON lines, a JSON list, or a table whose cells hold the JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tasks.common.errors import InputError
from tasks.common.texts.forms import records
from tasks.common.texts.json_records import distinct_keys
from tasks.common.texts.tables import header_of
from tasks.common.texts.text_files import first_non_blank

_LABELS = ("label", "entities", "tags", "ner_tags")  # columns in which an empty cell is a text without entities


def labeled_records(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", record). Cells of a table that are JSON lists or objects are read as such, except the text;
    an empty cell of labels is an empty list, and another empty one is left out."""
    first = first_non_blank(lines)
    is_table = first is not None and not first.lstrip().startswith(("{", "[")) and header_of(first) is not None
    for where, record in records(lines, name):
        yield where, _with_json(record, where) if is_table else record


def _with_json(row, where):
    record = {}
    for key, cell in row.items():
        bare = cell.strip()
        if key == "text":
            record[key] = cell
        elif bare.startswith(("[", "{")):
            record[key] = _of_cell(bare, where)
        elif bare or key in _LABELS:
            record[key] = cell if bare else []
    return record


def _of_cell(cell, where):
    """The JSON of a cell; what is none, such as "[1]号", is a string."""
    try:
        return json.loads(cell, object_pairs_hook=lambda pairs: distinct_keys(pairs, where))
    except json.JSONDecodeError:
        return cell
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: a cell of JSON that cannot be read ({error}); write it plainly") from None
