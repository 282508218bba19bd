"""The formats of labeled text. The content of a file decides which one it has, see ``recognition``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tasks.common.errors import InputError
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Example
from tasks.ner.formats import brat, cluener, label_studio, spacy, tags, token_tags
from tasks.ner.formats import span_records as spans
from tasks.ner.formats.recognition import recognize
from tasks.ner.formats.records import Records, labeled_records
from tasks.ner.formats.tagging import SCHEMES

__all__ = ["FORMATS", "FORMATS_OF_RELATIONS", "TEXT_FORMATS", "TextFormat", "brat", "check_format", "recognize"]


@dataclass(frozen=True)
class TextFormat:
    """A format of one text file."""

    sample: str  # what it looks like
    read: Callable[[list[str], str], list[Example]]  # lines, name of the file
    write: Callable[[Iterable[Example]], Iterator[str]]


def _of_records(sample: str, read: Callable[[Records, str], list[Example]], write: Callable) -> TextFormat:
    """A format of records, which may be JSON lines, a JSON list or a table."""
    return TextFormat(sample, lambda lines, name: read(labeled_records(lines, name), name), write)


def _of_tags(sample: str, read: Callable, write: Callable, suffix: str = "") -> dict[str, TextFormat]:
    """A layout of tags in each scheme."""
    return {
        one.name + suffix: TextFormat(f"{sample}, {one}", partial(read, scheme=one), partial(write, scheme=one))
        for one in SCHEMES
    }


_JOINED = "a sentence, a tab and its tags a line, joined by U+0002"
TEXT_FORMATS = {
    "cluener": _of_records('{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}', cluener.read, cluener.write),
    **_of_tags("one character and its tag a line", tags.read_columns, tags.write_columns),
    **_of_tags(_JOINED, tags.read_sentences, tags.write_sentences, "_sentences"),
    "doccano": _of_records('{"text": "...", "label": [[9, 12, "name"]]}', spans.read_doccano, spans.write_doccano),
    "doccano_entities": _of_records(
        '{"text": "...", "entities": [{"label": "name", "start_offset": 9, "end_offset": 12}]}',
        *(spans.read_doccano_entities, spans.write_doccano_entities),
    ),
    "cmeee": _of_records(
        '[{"text": "...", "entities": [{"start_idx": 9, "end_idx": 11, "type": "name", "entity": "叶老桂"}]}]',
        *(spans.read_cmeee, spans.write_cmeee),
    ),
    "labelstudio": _of_records(
        '[{"data": {"text": "..."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 9, "end": 12, '
        '"text": "叶老桂", "labels": ["name"]}, ...}]}]}]',
        *(label_studio.read, label_studio.write),
    ),
    "labelstudio_min": _of_records(
        '[{"text": "...", "label": [{"start": 9, "end": 12, "text": "叶老桂", "labels": ["name"]}], '
        '"annotation_id": 1}]',
        *(label_studio.read_min, label_studio.write_min),
    ),
    "tokens": _of_records(
        '{"tokens": ["叶", "老", "桂"], "ner_tags": ["B-name", "I-name", "I-name"]}', token_tags.read, token_tags.write
    ),
    "spacy": _of_records('[["...", {"entities": [[9, 12, "name"]]}]]', spacy.read, spans.write_spacy),
    "jsonl": _of_records(
        '{"text": "...", "entities": [{"start": 9, "end": 12, "type": "name"}]}',
        *(spans.read_predictions, spans.write_predictions),
    ),
}
FORMATS = (*TEXT_FORMATS, brat.NAME)
FORMATS_OF_RELATIONS = ("doccano_entities", "labelstudio", brat.NAME)


def check_format(name: str) -> None:
    """Raise InputError unless there is a format of this name."""
    if name not in FORMATS:
        raise InputError(f"unknown format {shown(name)}; the formats are {', '.join(FORMATS)}")
