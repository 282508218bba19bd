"""Texts and documents without labels, from files of plain text or of records."""

import bisect
import os
import re

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.forms import Form
from paddle_rope.tasks.common.texts.json_records import TEXT_KEYS
from paddle_rope.tasks.common.texts.streams import TextStream

SENTENCE_END = re.compile(r"[。！？；!?;…]+[”’」』）)\"]*")
SPLIT_SEED = 0  # the same documents are held out whatever the seed of the run
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")


def read_plain_texts(path: str | os.PathLike) -> list[str]:
    """The texts of a UTF-8 file: its lines, or the ``text`` or else ``sentence`` of its records. White space at the
    edges of a text is dropped, blank texts are skipped; raises InputError if there is no text."""
    return _texts(path, lambda lines: lines)


def read_documents(paths: list[str | os.PathLike]) -> list[str]:
    """The distinct documents of several UTF-8 files in their order, without white space at their edges.

    In records (JSON lines, a JSON list, a table) the ``text`` or ``sentence`` is a document. In plain text with a blank
    line between lines of text, blank lines separate the documents; otherwise each line is a document. Raises InputError
    if a file has no text.
    """
    return list(dict.fromkeys(text for path in paths for text in _texts(path, _split_documents)))


def _texts(path, split):
    """The texts of a file that are not blank; ``split`` turns lines of plain text into texts."""
    stream = TextStream(path, keys=TEXT_KEYS)
    texts = [text for chunk in stream for text, _ in chunk]
    if stream.form is Form.PLAIN:
        texts = split(texts)
    texts = [text for text in (text.strip() for text in texts) if text]
    if not texts:
        raise InputError(f"{stream.name}: no text in it; give one text a line, or records with a text")
    return texts


def _split_documents(lines):
    content = "\n".join(lines).strip()
    return _BLANK_LINES.split(content) if _BLANK_LINES.search(content) else content.split("\n")


def hold_out(documents: list[str], fraction: float) -> tuple[list[str], list[str]]:
    """Split documents in two, always in the same way: (rest, held), lists in the order of ``documents``; ``held`` has
    ``fraction`` of them, at least one. Raises InputError if there are fewer than two documents."""
    if len(documents) < 2:
        raise InputError("text_files: one document cannot be split into train and dev; give two or more")
    count = max(1, min(len(documents) - 1, round(fraction * len(documents))))
    held = set(np.random.RandomState(SPLIT_SEED).permutation(len(documents))[:count].tolist())
    rest = [document for index, document in enumerate(documents) if index not in held]
    return rest, [document for index, document in enumerate(documents) if index in held]


def cut_at_sentences(text: str, max_characters: int) -> list[str]:
    """Pieces of a text, of at most ``max_characters`` characters: each ends after the last sentence that fits, or, if
    none does, after ``max_characters``."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    pieces, start = [], 0
    while len(text) - start > max_characters:
        fitting = bisect.bisect_right(ends, start + max_characters)
        end = ends[fitting - 1] if fitting and ends[fitting - 1] > start else start + max_characters
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
