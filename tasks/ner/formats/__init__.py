"""The formats of labeled text, each in its file. The content of a file says which it has, see ``recognition``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tasks.common.errors import InputError
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Example
from tasks.ner.formats import brat, cluener, cmeee, doccano, label_studio, predictions, spacy, tags, token_tags
from tasks.ner.formats.json_records import Records
from tasks.ner.formats.recognition import recognize
from tasks.ner.formats.records import labeled_records
from tasks.ner.formats.tagging import SCHEMES

__all__ = ["FORMATS", "TEXT_FORMATS", "TextFormat", "brat", "check_format", "recognize"]


@dataclass(frozen=True)
class TextFormat:
    """A format of one text file."""

    sample: str  # what it looks like
    read: Callable[[list[str], str], list[Example]]  # lines, name of the file
    write: Callable[[Iterable[Example]], Iterator[str]]


def _of_records(sample: str, read: Callable[[Records, str], list[Example]], write: Callable) -> TextFormat:
    """A format of records, which may stand in JSON lines, a JSON list or a table."""
    return TextFormat(sample, lambda lines, name: read(labeled_records(lines, name), name), write)


TEXT_FORMATS = {
    "cluener": _of_records('{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}', cluener.read, cluener.write),
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
    "doccano": _of_records('{"text": "...", "label": [[9, 12, "name"]]}', doccano.read, doccano.write),
    "doccano_entities": _of_records(
        '{"text": "...", "entities": [{"label": "name", "start_offset": 9, "end_offset": 12}]}',
        doccano.read_entities,
        doccano.write_entities,
    ),
    "cmeee": _of_records(
        '[{"text": "...", "entities": [{"start_idx": 9, "end_idx": 11, "type": "name", "entity": "叶老桂"}]}]',
        cmeee.read,
        cmeee.write,
    ),
    "labelstudio": _of_records(
        '[{"data": {"text": "..."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 9, "end": 12, '
        '"text": "叶老桂", "labels": ["name"]}, ...}]}]}]',
        label_studio.read,
        label_studio.write,
    ),
    "labelstudio_min": _of_records(
        '[{"text": "...", "label": [{"start": 9, "end": 12, "text": "叶老桂", "labels": ["name"]}], '
        '"annotation_id": 1}]',
        label_studio.read_min,
        label_studio.write_min,
    ),
    "tokens": _of_records(
        '{"tokens": ["叶", "老", "桂"], "ner_tags": ["B-name", "I-name", "I-name"]}', token_tags.read, token_tags.write
    ),
    "spacy": _of_records('[["...", {"entities": [[9, 12, "name"]]}]]', spacy.read, spacy.write),
    "jsonl": _of_records(
        '{"text": "...", "entities": [{"start": 9, "end": 12, "type": "name"}]}', predictions.read, predictions.write
    ),
}
FORMATS = (*TEXT_FORMATS, brat.NAME)


def check_format(name: str) -> None:
    """Raise InputError unless there is a format of this name."""
    if name not in FORMATS:
        raise InputError(f"unknown format {shown(name)}; the formats are {', '.join(FORMATS)}")
