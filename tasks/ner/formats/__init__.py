"""The formats of labeled text, and how a file's format is recognized by its content."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.forms import Form, form_of
from paddle_rope.tasks.common.texts.tables import TAG, TOKEN, header_of
from paddle_rope.tasks.common.texts.text_files import first_non_blank, shown
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.formats import brat, label_studio, tags, triples
from paddle_rope.tasks.ner.formats import span_records as spans
from paddle_rope.tasks.ner.formats.records import Records, labeled_records, spans_key, write_lines, write_list
from paddle_rope.tasks.ner.formats.source import Source
from paddle_rope.tasks.ner.formats.span_records import CMEEE, DOCCANO
from paddle_rope.tasks.ner.formats.tagging import SCHEMES, read_rows
from paddle_rope.tasks.ner.formats.tags import column_sentences, find_scheme, has_joined_sentences, joined_sentences


@dataclass(frozen=True)
class TextFormat:
    """A format of one text file."""

    sample: str  # what it looks like
    read: Callable[[list[str], Source], list[Example]]  # lines, and the file that has them
    write: Callable[[Iterable[Example]], Iterator[str]]


def _of_records(sample: str, read: Callable[[Records, Source], list[Example]], records_of: Callable) -> TextFormat:
    """A format of records: read from JSON lines, a JSON list or a table, and written in the form of the sample."""
    write = write_list if sample.startswith("[") else write_lines

    def read_lines(lines, source):
        return read(labeled_records(lines, source), source)

    return TextFormat(sample, read_lines, lambda examples: write(records_of(examples)))


def _of_tags(sample: str, read: Callable, write: Callable, suffix: str = "") -> dict[str, TextFormat]:
    """The formats of a layout of tags, one for each scheme, by name."""
    return {
        one.name + suffix: TextFormat(f"{sample}, {one}", partial(read, scheme=one), partial(write, scheme=one))
        for one in SCHEMES
    }


_JOINED = "a sentence, a tab and its tags a line, joined by U+0002"
TEXT_FORMATS = {
    "cluener": _of_records(
        '{"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}}', spans.read_cluener, spans.cluener_records
    ),
    **_of_tags("one character and its tag a line", tags.read_columns, tags.write_columns),
    **_of_tags(_JOINED, tags.read_sentences, tags.write_sentences, "_sentences"),
    "doccano": _of_records('{"text": "...", "label": [[9, 12, "name"]]}', spans.read_listed, spans.doccano_records),
    "doccano_entities": _of_records(
        '{"text": "...", "entities": [{"label": "name", "start_offset": 9, "end_offset": 12}]}',
        spans.read_doccano_entities, spans.doccano_entities_records,
    ),
    "cmeee": _of_records(
        '[{"text": "...", "entities": [{"start_idx": 9, "end_idx": 11, "type": "name", "entity": "叶老桂"}]}]',
        spans.read_objects, CMEEE.records,
    ),
    "labelstudio": _of_records(
        '[{"data": {"text": "..."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 9, "end": 12, '
        '"text": "叶老桂", "labels": ["name"]}, ...}]}]}]',
        label_studio.read, label_studio.tasks,
    ),
    "labelstudio_min": _of_records(
        '[{"text": "...", "label": [{"start": 9, "end": 12, "text": "叶老桂", "labels": ["name"]}], '
        '"annotation_id": 1}]',
        label_studio.read_min, label_studio.min_annotations,
    ),
    "tokens": _of_records(
        '{"tokens": ["叶", "老", "桂"], "ner_tags": ["B-name", "I-name", "I-name"]}', tags.read_lists, tags.list_records
    ),
    "spacy": _of_records('[["...", {"entities": [[9, 12, "name"]]}]]', spans.read_spacy, spans.spacy_records),
    "jsonl": _of_records(
        '{"text": "...", "entities": [{"start": 9, "end": 12, "type": "name"}]}', spans.read_jsonl, spans.jsonl_records
    ),
}  # fmt: skip
FORMATS = (*TEXT_FORMATS, brat.NAME)
FORMATS_OF_RELATIONS = ("doccano_entities", "labelstudio", "jsonl", brat.NAME)


def check_format(name: str) -> None:
    """Raise InputError unless there is a format of this name."""
    if name not in FORMATS:
        raise InputError(f"unknown format {shown(name)}; the formats are {', '.join(FORMATS)}")


# ---- which format a file has

EXAMPLES = (
    'JSON lines such as {"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}} '
    "or one character and its BIO or BMES tag a line such as '中 B-LOC'"
)
# formats for records without labels: their readers report that labels are missing
_UNLABELED = {Form.JSON_LINES: "cluener", Form.JSON_LIST: "cmeee", Form.TABLE: "doccano"}
_OF_OBJECTS = {DOCCANO.start: "doccano_entities", CMEEE.start: "cmeee"}


def recognize(lines: list[str], source: Source) -> str:
    """The name of the format of a text file.

    Its form distinguishes records from tags (:mod:`paddle_rope.tasks.common.texts.forms`). The first record with
    entities decides about records; the prefixes of all tags decide about tags.
    """
    first, name = first_non_blank(lines), source.name
    if first is None:
        raise InputError(f"{name}:1: the file is empty or has only blank lines; give labeled data, {EXAMPLES}")
    form = labeled_form(lines)
    if form in _UNLABELED:
        return _format_of_records(lines, source, _UNLABELED[form])
    if header_of(first) is None and has_joined_sentences(lines):
        return f"{find_scheme(joined_sentences(lines, name), name).name}_sentences"
    return find_scheme(column_sentences(read_rows(lines, name), name), name).name


def labeled_form(lines: list[str]) -> Form:
    """The form of lines of a labeled file; a table with a token and its tag in each row is tagged text."""
    form = form_of(lines)
    if form is Form.TABLE and header_of(first_non_blank(lines)).has(TOKEN, TAG):
        return Form.TAGGED
    return form


def _format_of_records(lines: list[str], source: Source, unlabeled: str) -> str:
    """The format of records; ``unlabeled`` is returned for records without labels, which its reader reports."""
    found = None
    for where, record in labeled_records(lines, source):
        if label_studio.ANNOTATION_ID in record:
            return "labelstudio_min"
        if "data" in record:
            return "labelstudio"
        if spans.PARAGRAPHS in record:
            return "spacy"
        if spans.TOKENIZED in record or triples.TRIPLES in record:
            return "jsonl"
        key = spans_key(record, where)
        if key is None and tags.has_tags(record):
            return "tokens"
        if key is None:
            continue
        entities = record[key]
        if isinstance(entities, dict):
            return "cluener"
        first = next(iter(entities), None)
        if isinstance(first, dict):
            return next((format for start, format in _OF_OBJECTS.items() if start in first), "jsonl")
        if first is not None or key in ("label", "labels"):
            return "doccano" if key in ("label", "labels") else "spacy"
        found = "cmeee" if unlabeled == "cmeee" else "jsonl"  # equal as long as there are no entities
    return found or unlabeled
