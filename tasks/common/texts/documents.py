"""Documents from files of text."""

import re

import numpy as np

from tasks.common.errors import InputError
from tasks.common.texts.plain_texts import texts_of_records
from tasks.common.texts.text_files import read_text, split_lines

SPLIT_SEED = 0  # the same documents are held out whatever the seed of the run
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")


def read_documents(paths):
    """Read the documents of several files; one that is there twice is taken once.

    Of records (JSON lines, a JSON list, a table) the ``text`` or ``sentence`` is a document. In files of plain text
    that have a blank line between lines of text, blank lines part the documents; in files without, each line is one.

    Args:
        paths: list of paths of UTF-8 files.

    Returns:
        list of different strings without white space at their edges, in the order of the files.

    Raises:
        InputError: a file cannot be read, has no text, or a line of JSON has no text.
    """
    documents = {}
    for path in paths:
        content, name = read_text(path)
        lines = split_lines(content)
        found = texts_of_records(lines, name)
        found = split_documents("\n".join(lines)) if found is None else found
        found = [text for text in (text.strip() for text in found) if text]
        if not found:
            raise InputError(f"{name}: no text in it; give documents parted by blank lines, or one a line")
        documents.update(dict.fromkeys(found))
    return list(documents)


def split_documents(content):
    """The documents of a text file, see :func:`read_documents`."""
    content = content.strip()
    return _BLANK_LINES.split(content) if _BLANK_LINES.search(content) else content.split("\n")


def hold_out(documents, fraction):
    """Cut documents in two, always in the same way.

    Returns:
        (rest, held): lists in the order of ``documents``; ``held`` has ``fraction`` of them, at least one.

    Raises:
        InputError: there are less than two.
    """
    if len(documents) < 2:
        raise InputError("text_files: one document cannot be cut into train and dev; give two or more")
    count = max(1, min(len(documents) - 1, round(fraction * len(documents))))
    held = set(np.random.RandomState(SPLIT_SEED).permutation(len(documents))[:count].tolist())
    rest = [document for index, document in enumerate(documents) if index not in held]
    return rest, [document for index, document in enumerate(documents) if index in held]
