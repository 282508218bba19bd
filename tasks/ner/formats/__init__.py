"""The formats of labeled text, each in its file, and how a file's format is recognized by its content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tasks.common.errors import InputError
from tasks.common.language import Message
from tasks.common.texts.json_array import array_records
from tasks.common.texts.text_files import BLANKS, first_non_blank, shown
from tasks.ner.examples import Example
from tasks.ner.formats import brat, cluener, cmeee, doccano, label_studio, predictions, tags
from tasks.ner.formats.tagging import SCHEMES, parse_tag


@dataclass(frozen=True)
class TextFormat:
    """A format of one text file."""

    sample: str  # what it looks like
    read: Callable[[list[str], str], list[Example]]  # lines, name of the file
    write: Callable[[Iterable[Example]], Iterator[str]]


TEXT_FORMATS = {
    "cluener": TextFormat('{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}', cluener.read, cluener.write),
    **{
        scheme.name: TextFormat(
            f"one character and its tag a line, {scheme}",
            partial(tags.read_columns, scheme=scheme),
            partial(tags.write_columns, scheme=scheme),
        )
        for scheme in SCHEMES
    },
    **{
        f"{scheme.name}_sentences": TextFormat(
            f"a sentence, a tab and its tags a line, joined by U+0002, {scheme}",
            partial(tags.read_sentences, scheme=scheme),
            partial(tags.write_sentences, scheme=scheme),
        )
        for scheme in SCHEMES
    },
    "doccano": TextFormat('{"text": "...", "label": [[9, 12, "name"]]}', doccano.read, doccano.write),
    "doccano_entities": TextFormat(
        '{"text": "...", "entities": [{"label": "name", "start_offset": 9, "end_offset": 12}]}',
        doccano.read_entities,
        doccano.write_entities,
    ),
    "cmeee": TextFormat(
        '[{"text": "...", "entities": [{"start_idx": 9, "end_idx": 11, "type": "name", "entity": "叶老桂"}]}]',
        cmeee.read,
        cmeee.write,
    ),
    "labelstudio": TextFormat(
        '[{"data": {"text": "..."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 9, "end": 12, '
        '"text": "叶老桂", "labels": ["name"]}, ...}]}]}]',
        label_studio.read,
        label_studio.write,
    ),
    "labelstudio_min": TextFormat(
        '[{"text": "...", "label": [{"start": 9, "end": 12, "text": "叶老桂", "labels": ["name"]}], '
        '"annotation_id": 1}]',
        label_studio.read_min,
        label_studio.write_min,
    ),
    "jsonl": TextFormat(
        '{"text": "...", "entities": [{"start": 9, "end": 12, "type": "name"}]}', predictions.read, predictions.write
    ),
}
FORMATS = (*TEXT_FORMATS, brat.NAME)


def check_format(name: str) -> None:
    """Raise InputError unless there is a format of this name."""
    if name not in FORMATS:
        raise InputError(
            "unknown format {name}; the formats are {formats}", name=shown(name), formats=", ".join(FORMATS)
        )


def recognize(lines: list[str], name: str) -> str:
    """The name of the format that a text file's content has.

    The first line that is not blank decides between JSON and tags. Of JSON lines, the first record with entities
    decides; of tags, the letters of all the tags.
    """
    first = first_non_blank(lines)
    if first is None:
        raise InputError(
            "{name}:1: the file is empty or has only blank lines; give labeled data, {examples}",
            name=name,
            examples=_EXAMPLES,
        )
    if looks_like_json(first, "{"):
        return _recognize_records(lines)
    if looks_like_json(first, "["):
        return _recognize_array(lines, name)
    scheme = tags.recognize_scheme(lines, name).name
    return f"{scheme}_sentences" if tags.is_sentence_layout(lines) else scheme


_EXAMPLES = Message(
    'JSON lines such as {"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}} '
    "or one character and its BIO or BMES tag a line such as '中 B-LOC'"
)


def looks_like_json(line: str, bracket: str) -> bool:
    """Whether a line is meant as the beginning of JSON, and not as the character ``bracket`` and its tag."""
    line = line.strip(BLANKS)
    closing = {"{": "}", "[": "]"}[bracket]
    if not line.startswith(bracket):
        return False
    return line.endswith(closing) or parse_tag(tags.split_tag(line)[1].split(tags.JOINT)[0]) is None


def _recognize_array(lines: list[str], name: str) -> str:
    """The format of one JSON list, by its first object; a broken one is left to the reader to complain of."""
    try:
        _, record = next(array_records("\n".join(lines), name))
    except (InputError, StopIteration):
        return "cmeee"
    if "data" in record:
        return "labelstudio"
    return "labelstudio_min" if label_studio.ANNOTATION_ID in record else "cmeee"


def _recognize_records(lines: list[str]) -> str:
    """The format of JSON lines; lines that are broken, or of no known form, are left to the reader to complain of."""
    found = None
    for line in lines:
        if not line.strip(BLANKS):
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(record, dict):
            continue
        if "label" in record or "labels" in record:
            return "doccano" if isinstance(record.get("label", record.get("labels")), list) else "cluener"
        if "entities" not in record:
            break
        found = "jsonl"  # which is the same as doccano's as long as there are no entities
        if record["entities"]:
            first = record["entities"][0] if isinstance(record["entities"], list) else None
            return "doccano_entities" if isinstance(first, dict) and "start_offset" in first else "jsonl"
    return found or "cluener"
