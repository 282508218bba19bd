"""Texts without labels, from a file of the user's."""

import json
import re

from tasks.common.errors import InputError
from tasks.common.text_files import read_text, shown, split_lines

JSON_ENDINGS = (".json", ".jsonl")
TEXT_KEYS = ("text", "sentence")  # of a JSON record; the first that it has
SENTENCE_END = re.compile(r"[。！？；!?;…]+[”’」』）)\"]*")


def read_plain_texts(path):
    """Read a text from each line: the line itself, or, in files named ``.json`` or ``.jsonl``, its ``text`` or else
    ``sentence``.

    Args:
        path: of a UTF-8 file; blank lines are skipped.

    Returns:
        list of strings without white space at their edges.

    Raises:
        InputError: the file cannot be read, has no text, or a line of JSON has no ``text``.
    """
    content, name = read_text(path)
    lines = split_lines(content)
    if str(path).endswith(JSON_ENDINGS):
        lines = [line and text_of_record(line, f"{name}:{number}") for number, line in enumerate(lines, 1)]
    texts = [text for text in (line.strip() for line in lines) if text]
    if not texts:
        raise InputError(f"{name}: no text in it; give a file with one text a line")
    return texts


def text_of_record(line, where):
    """The ``text``, or else the ``sentence``, of a JSON record; without one raises InputError, which says ``where``."""
    try:
        record = json.loads(line)
        text = record[next(key for key in TEXT_KEYS if key in record)]
    except (ValueError, TypeError, StopIteration):
        text = None
    if not isinstance(text, str):
        raise InputError(f'{where}: {shown(line)} is no record with a text; write {{"text": "..."}}')
    return text


def cut_at_sentences(text, max_length):
    """Cut a text into pieces of at most ``max_length`` characters, after the last end of a sentence that fits, or where
    there is none after ``max_length`` characters."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    pieces, start = [], 0
    while len(text) - start > max_length:
        fitting = [end for end in ends if start < end <= start + max_length]
        end = fitting[-1] if fitting else start + max_length
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
