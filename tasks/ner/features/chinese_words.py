"""Words of a text by jieba: its segmentation with parts of speech, and all words of its dictionary."""

from __future__ import annotations

import functools
import importlib.metadata
import logging
from typing import NamedTuple

from tasks.ner.features.matching import find_words

# Parts of speech of jieba's dictionary in groups: by its first two letters, else by its first, else "x".
TAG_CLASSES = ("nr", "ns", "nt", "nz", "n", "v", "a", "i", "m", "t", "s", "j", "x")
_SAME_CLASS = {"b": "a", "z": "a", "l": "i", "q": "m", "f": "s"}
# Characters in which a word is looked for behind the one before it, should jieba leave some out.
_SEARCHED = 64


class Word(NamedTuple):
    """``text[start:end]`` with its part of speech."""

    start: int
    end: int
    tag: str


def segment(text):
    """jieba's segmentation of a text, with its hidden Markov model for words that the dictionary lacks.

    Returns:
        List of :class:`Word` in the order of the text; characters that jieba leaves out belong to none.
    """
    words, end = [], 0
    for word, tag in _tagger().cut(text):
        start = end
        if not text.startswith(word, start):
            start = text.find(word, end, end + _SEARCHED + len(word))
        if start >= 0 and word:
            end = start + len(word)
            words.append(Word(start, end, tag))
    return words


def dictionary_words(text):
    """All words of two or more characters in jieba's dictionary that stand in a text, also overlapping ones.

    Returns:
        List of :class:`Word`, ordered by start and end.
    """
    tagger = _tagger()
    tags = tagger.word_tag_tab
    found = find_words(text, tagger.tokenizer.FREQ, shortest=2)
    return [Word(start, end, tags.get(text[start:end], "x")) for start, end in found]


@functools.cache
def tag_class(tag):
    """Number of a part of speech in ``TAG_CLASSES``."""
    for name in (tag[:2], _SAME_CLASS.get(tag[:1], tag[:1])):
        if name in TAG_CLASSES:
            return TAG_CLASSES.index(name)
    return TAG_CLASSES.index("x")


def jieba_version():
    """Version of the installed jieba; does not load it."""
    return importlib.metadata.version("jieba")


@functools.cache
def _tagger():
    """jieba's tagger with a dictionary of its own, so that words a program adds to jieba change nothing; read once, at
    the first text, without messages."""
    logger = logging.getLogger("jieba")
    import jieba.posseg  # sets the level of its logger

    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        cutter = jieba.Tokenizer()
        cutter.initialize()
        return jieba.posseg.POSTokenizer(cutter)
    finally:
        logger.setLevel(level)
