"""Which format a labeled file has: its content decides."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of
from tasks.common.texts.tables import TAG, TOKEN, header_of
from tasks.common.texts.text_files import BLANKS, first_non_blank
from tasks.ner.formats import label_studio, spacy, tags, token_tags
from tasks.ner.formats.records import labeled_records
from tasks.ner.formats.tagging import parse_tag

EXAMPLES = (
    'JSON lines such as {"text": "...", "label": {"name": {"叶老桂": [[9, 11]]}}} '
    "or one character and its BIO or BMES tag a line such as '中 B-LOC'"
)


def recognize(lines: list[str], name: str) -> str:
    """The name of the format that a text file's content has.

    Its form tells records from tags (:mod:`tasks.common.texts.forms`). Of records, the first with entities decides; of
    tags, the letters of all the tags.
    """
    first = first_non_blank(lines)
    if first is None:
        raise InputError(f"{name}:1: the file is empty or has only blank lines; give labeled data, {EXAMPLES}")
    header = header_of(first)
    is_list = looks_like_json(first, "[")
    if looks_like_json(first, "{") or is_list:
        return _of_records(_readable(lines, name, is_list), "cmeee" if is_list else "cluener")
    if form_of(lines) is Form.TABLE and not header.has(TOKEN, TAG):
        return _of_records(labeled_records(lines, name), "doccano")
    if header is None and tags.is_sentence_layout(lines):
        return f"{tags.recognize_scheme(lines, name, is_sentences=True).name}_sentences"
    return tags.recognize_scheme(lines, name).name


def looks_like_json(line: str, bracket: str) -> bool:
    """Whether a line is meant as the beginning of JSON, and not as the character ``bracket`` and its tag."""
    line = line.strip(BLANKS)
    closing = {"{": "}", "[": "]"}[bracket]
    if not line.startswith(bracket):
        return False
    return line.endswith(closing) or parse_tag(tags.split_tag(line)[1].split(tags.JOINT)[0]) is None


def _readable(lines, name, is_list):
    """Records that can be read; broken ones are left to the reader to complain of."""
    if is_list:
        try:
            yield from labeled_records(lines, name)
        except InputError:
            return
    for line in lines:
        if line.strip(BLANKS):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield "", record


def _of_records(records: Iterable[tuple[str, dict]], unlabeled: str) -> str:
    """The format of records; ``unlabeled`` is that of those that have no labels, whose reader complains."""
    found = None
    for _, record in records:
        if label_studio.ANNOTATION_ID in record:
            return "labelstudio_min"
        if "data" in record:
            return "labelstudio"
        if spacy.PARAGRAPHS in record:
            return "spacy"
        if token_tags.has_tags(record):
            return "tokens"
        label = record.get("label", record.get("labels"))
        if label is not None:
            if isinstance(label, dict):
                return "cluener"
            return "doccano" if isinstance(label, list) or unlabeled == "doccano" else "cluener"
        if "entities" not in record:
            break
        found = "cmeee" if unlabeled == "cmeee" else "jsonl"  # the same in all formats as long as there are none
        if record["entities"]:
            return _of_entities(record["entities"], found)
    return found or unlabeled


def _of_entities(entities, otherwise):
    """The format that has such a list of entities."""
    first = entities[0] if isinstance(entities, list) else None
    if isinstance(first, list):
        return "spacy"
    if isinstance(first, dict):
        for key, format in (("start_offset", "doccano_entities"), ("start_idx", "cmeee"), ("start", "jsonl")):
            if key in first:
                return format
    return otherwise
