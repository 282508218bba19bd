"""Labeled texts: reading with validation, and the splits of a run.

Three formats, recognized by the first lines:

* JSON lines with ``text`` or ``sentence``, ``label`` (a number or a string) and optionally ``label_des``, the name of
  the label, as in CLUE's IFLYTEK; other keys are ignored; or a JSON list of such objects;
* a table, CSV or TSV, whose header has columns of text and label;
* ``text<TAB>label``, one text per line, no header.

The name of a class is ``label_des``, or else ``label``.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.forms import Form, form_of, records
from paddle_rope.tasks.common.texts.json_records import TEXT_KEYS, check_encodable, json_text
from paddle_rope.tasks.common.texts.text_files import BLANKS, first_non_blank, shown
from paddle_rope.tasks.common.training.data import LabeledData, hold_out_dev, note_repeated, note_unseen, read_files

HEADER_WORDS = {"text", "sentence", "text_a", "label"}


@dataclass(frozen=True)
class Example:
    """A text and the name of its class."""

    text: str
    label: str
    where: str  # "path:line", for error messages


def read_lines(lines: list[str], name: str) -> list[Example]:
    """The examples of the lines of a file called ``name``, or of records in memory."""
    first = first_non_blank(lines) or ""
    are_records = first.strip(BLANKS).startswith("{") or form_of(lines) in (Form.JSON_LIST, Form.TABLE)
    examples = list(_examples(records(lines, name) if are_records else _tab_separated(lines, name)))
    if not examples:
        raise InputError(f"{name}:1: there is no text in it; give labeled texts")
    return examples


LABELED = LabeledData(read_lines)


def class_names(examples: Iterable[Example]) -> list[str]:
    """The sorted names of the classes of examples; sorted by value if all are numbers."""
    names = {example.label for example in examples}
    if not all(name.isascii() and name.isdigit() for name in names):
        return sorted(names)
    # by the number of significant digits, then the digits: Python refuses to read thousands of digits as a number
    return sorted(names, key=lambda name: (len(name.lstrip("0")), name.lstrip("0"), name))


def with_unseen(classes: list[str], examples: Iterable[Example]) -> list[str]:
    """The classes of a model, followed by the other classes of examples on which it is scored."""
    known = set(classes)
    return [*classes, *class_names(example for example in examples if example.label not in known)]


def read_splits(keys, memory=None):
    """The examples of a run by split: ``train`` and, if there are any, ``dev`` and ``test``; notes unseen classes.
    Raises InputError if a file is wrong, or train has fewer than two classes or a different one for each text."""
    splits, names = read_files(keys, LABELED.read_file, memory)
    note_repeated(splits, names, lambda example: (example.text, example.label))
    classes = class_names(splits["train"])
    if len(classes) < 2:
        raise InputError(
            f"{names['train']}: all texts have the label {classes[0]!r}; give data with two classes or more"
        )
    if len(classes) == len(splits["train"]) > 2:
        raise InputError(
            f"{names['train']}: each text has a different label; is it label<TAB>text? Write text<TAB>label"
        )
    hold_out_dev(keys, splits, names, lambda example: [example.label])
    note_unseen(splits, names, "classes", class_names)
    return splits


def _examples(found: Iterable[tuple[str, dict]]) -> Iterator[Example]:
    names: dict = {}  # label -> (its name, where)
    for where, record in found:
        text = json_text(record, where, TEXT_KEYS)
        if not text.strip():
            raise InputError(f"{where}: the text is empty; remove the line or give it a text")
        label = _label(record.get("label"), '"label"', where)
        name = _label(record["label_des"], '"label_des"', where) if "label_des" in record else label
        before, first = names.setdefault(label, (name, where))
        if before != name:
            raise InputError(
                f"{where}: label {shown(label)} has the name {shown(name)} here, but {shown(before)} at {first}; give "
                "each label one name, on every line or on none"
            )
        yield Example(text, name, where)


def _tab_separated(lines: list[str], name: str) -> Iterator[tuple[str, dict]]:
    for number, line in enumerate(lines, 1):
        if not line.strip(BLANKS):
            continue
        where, fields = f"{name}:{number}", line.split("\t")
        if len(fields) != 2:
            raise InputError(
                f"{where}: {len(fields) - 1} tabs in the line; write each line as text<TAB>label, with a space for a "
                "tab inside the text, or give JSON lines"
            )
        if set(fields) <= HEADER_WORDS:
            raise InputError(f"{where}: {shown(line)} is a header; remove it: each line has to be text<TAB>label")
        yield where, dict(zip(("text", "label"), fields))


def _label(value: object, what: str, where: str) -> str:
    """A label as a string."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise InputError(f'{where}: {what} is {shown(value)}; give each line a number or a string as its "label"')
    label = str(value).strip()
    if not label:
        raise InputError(f"{where}: {what} is empty; name the class of the text")
    check_encodable(label, what, where)
    return label
