"""Word tokenizer of the Chinese RoFormer, with exact character offsets."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from paddle_rope.roformer.tokenization.tokenizer import MAX_WORD, Tokenizer

if TYPE_CHECKING:
    import jieba

MAX_REMEMBERED = 1 << 16  # chunks whose tokens are kept for the next text
# BERT's blocks of Chinese characters; kana and hangul are not among them.
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)
# Letters and numbers by Unicode category, at which PaddleNLP's tokenizers nevertheless cut as at symbols.
_LETTERS_CUT_AS_SYMBOLS = frozenset("²µºØŋƱ〇")


class WordTokenizer(Tokenizer):
    """Words of jieba that the vocabulary has; other words as characters and pieces.

    The steps and the ids are the same as in PaddleNLP's ``RoFormerTokenizer`` with ``use_jieba=True``:

    1. Control characters (Unicode category C) are removed; white space separates words and has no token.
    2. jieba cuts the text, with its own dictionary and without HMM. A word of the vocabulary is a chunk, and so is
       each Chinese character of another word. Each remaining run between these and white space is a chunk.
    3. Chunks are normalized unless ``do_lower_case`` is False: lower case, canonical decomposition, accents removed.
    4. Chunks are cut at punctuation and symbols, each of which is a token, and the rest into the longest pieces of
       the vocabulary. A part that they do not cover, or that is longer than 100 characters, is one ``[UNK]``.

    Offsets refer to the text as given. An accent, or another mark of category Mn, belongs to the character before it. A
    removed control character belongs to no token unless it is within one. The pieces of one character (a hangul
    syllable is decomposed) share its offsets. Words added to ``jieba.cut`` change nothing here.

    >>> tokenizer = WordTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "北京", "大", "学", "生"])
    >>> tokenizer.encode("北京大学生").ids
    [2, 4, 5, 6, 7, 3]
    """

    def __init__(self, vocab: Iterable[str], do_lower_case: bool = True) -> None:
        super().__init__(vocab, do_lower_case)
        self._remembered: dict = {}

    def _tokenize(self, text):
        clean = text.translate(_CLEAN)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, chunk in self._chunks(clean):
            num_marks, tokens = self._remembered.get(chunk) or self._tokens_of_chunk(chunk)
            if num_marks and offsets and offsets[-1][1] == start:
                offsets[-1] = (offsets[-1][0], start + num_marks)
            for index, token_start, token_end in tokens:
                ids.append(index)
                offsets.append((start + token_start, start + token_end))
        if len(clean) != len(text):
            kept = [index for index, character in enumerate(text) if _CLEAN[ord(character)] is not None]
            offsets = [(kept[start], kept[end - 1] + 1) for start, end in offsets]
        return ids, offsets

    def _chunks(self, clean):
        """(start, string) of each chunk of step 2."""
        apart, start = [], 0  # words of the vocabulary, Chinese characters of other words, and white space
        for word in jieba_cutter().cut(clean, HMM=False):
            if word in self.token_to_id or word.isspace():
                apart.append((start, word))
            else:
                apart += [(start + match.start(), match[0]) for match in CHINESE.finditer(word)]
            start += len(word)
        rest = 0  # the text between rest and the next of them is a chunk
        for at, chunk in [*apart, (start, "")]:
            if rest < at:
                yield rest, clean[rest:at]
            if chunk.strip():
                yield at, chunk
            rest = at + len(chunk)

    def _tokens_of_chunk(self, chunk):
        """(number of marks at its start that belong to the text before, list of (id, start, end)); remembered."""
        num_marks, normal, starts, ends = _normalize(chunk) if self.do_lower_case else _as_it_is(chunk)
        tokens = []
        for start, end in _words(normal):
            pieces = self._pieces_of_word(normal[start:end], MAX_WORD)
            tokens += [(index, starts[start + first], ends[start + last - 1]) for index, first, last in pieces]
        if len(chunk) <= MAX_WORD:
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[chunk] = num_marks, tokens
        return num_marks, tokens


class _CleanTable(dict):
    """For ``str.translate``: None for control characters, a space for spaces, other characters unchanged."""

    def __missing__(self, code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        kept = None if code == 0xFFFD or category.startswith("C") else code
        self[code] = " " if code in (9, 10, 13) or category == "Zs" else kept
        return self[code]


_CLEAN = _CleanTable()


@functools.cache
def jieba_cutter() -> jieba.Tokenizer:
    """jieba with its own dictionary, loaded at the first text without its messages; not from ``jieba.cache`` in the
    temporary folder, where any user can write."""
    import jieba  # sets the level of its logger

    cutter = jieba.Tokenizer()
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter


def _normalize(chunk):
    """Lower case without accents: (number of marks at the start of ``chunk``, normalized string, and for each of its
    characters the start and the end of its source in ``chunk``)."""
    lowered = chunk.lower()  # as a whole, because a sigma at the end of a word has its own lower case
    if chunk.isascii():
        return _as_it_is(lowered)
    num_marks, normal, starts, ends, at = 0, "", [], [], 0
    for index, character in enumerate(chunk):
        width = len(character.lower())
        for part in unicodedata.normalize("NFD", lowered[at : at + width]):
            if unicodedata.category(part) != "Mn":
                normal += part
                starts.append(index)
                ends.append(index + 1)
            elif ends:
                ends[-1] = index + 1
            else:
                num_marks = index + 1
        at += width
    return num_marks, normal, starts, ends


def _as_it_is(chunk):
    """As :func:`_normalize`, for a chunk whose characters stay in place."""
    return 0, chunk, range(len(chunk)), range(1, len(chunk) + 1)


def _words(normal):
    """The half-open character ranges of the words of a normalized chunk; each punctuation mark or symbol is a word."""
    start = 0
    for index, character in enumerate(normal):
        if unicodedata.category(character)[0] in "PS" or character in _LETTERS_CUT_AS_SYMBOLS:
            if start < index:
                yield start, index
            yield index, index + 1
            start = index + 1
    if start < len(normal):
        yield start, len(normal)
