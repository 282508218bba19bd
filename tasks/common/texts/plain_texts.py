"""Texts without labels, from a file of the user's."""

import bisect
import re

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of, records, refused_tags
from tasks.common.texts.json_lines import TEXT_KEYS, json_records, json_text
from tasks.common.texts.text_files import first_non_blank, read_text, split_lines

JSON_ENDINGS = (".json", ".jsonl")
SENTENCE_END = re.compile(r"[。！？；!?;…]+[”’」』）)\"]*")


def read_plain_texts(path):
    """Read a text from each line of a UTF-8 file: the line itself, or, of records, the ``text`` or else ``sentence``.
    White space at the edges of a text is dropped, blank lines are skipped.

    Raises:
        InputError: the file cannot be read, has no text, or a record has no ``text``.
    """
    content, name = read_text(path)
    lines = split_lines(content)
    recorded = texts_of_records(lines, name)
    lines = lines if recorded is None else recorded
    texts = [text for text in (line.strip() for line in lines) if text]
    if not texts:
        raise InputError(f"{name}: no text in it; give a file with one text a line")
    return texts


def texts_of_records(lines, name):
    """The ``text``, or else the ``sentence``, of each record in the lines of a file called ``name``: JSON lines, a JSON
    list or a table; None for plain text, which no file named ``.json`` or ``.jsonl`` is.

    Raises:
        InputError: a record has no such text, or the lines are tagged text.
    """
    is_json = name.endswith(JSON_ENDINGS)
    form = Form.PLAIN if first_non_blank(lines) is None else form_of(lines)
    if form is Form.TAGGED and not is_json:
        raise refused_tags(name)
    if form is Form.PLAIN and not is_json:
        return None
    found = json_records(lines, name) if form is Form.PLAIN else records(lines, name)
    return [json_text(record, where, TEXT_KEYS) for where, record in found]


def cut_at_sentences(text, max_characters):
    """Cut a text into pieces of at most ``max_characters``: after the last end of a sentence that fits, or, where there
    is none, after ``max_characters``."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    pieces, start = [], 0
    while len(text) - start > max_characters:
        fitting = bisect.bisect_right(ends, start + max_characters)
        end = ends[fitting - 1] if fitting and ends[fitting - 1] > start else start + max_characters
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
