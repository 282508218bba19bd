"""The tokenizer of BERT, ELECTRA and ERNIE, with exact character offsets."""

import re
import string
import unicodedata
from collections.abc import Iterable
from typing import ClassVar

from paddle_rope.roformer.tokenization.tokenizer import MAX_WORD, Tokenizer
from paddle_rope.roformer.tokenization.word_tokenizer import CHINESE

_REMOVED = ("Cc", "Cf", "Co", "Cs")  # categories of Unicode
_WORD = re.compile("[^ ]+")


class WordPieceTokenizer(Tokenizer):
    """Chinese characters and punctuation marks one by one, and other words in the longest pieces of the vocabulary.

    Ids and offsets are the same as in ``BertWordPieceTokenizer`` of Hugging Face's tokenizers 0.23, except that special
    tokens written in a text are text:

    1. Control characters are removed, and white space separates words.
    2. Chinese characters are words, unless ``tokenize_chinese_chars`` is False.
    3. With ``strip_accents``, characters are decomposed and accents removed; by default if ``do_lower_case`` is True,
       which lowers the case of letters.
    4. Punctuation marks are words.
    5. A word that pieces do not cover, or of more than 100 characters, is one ``[UNK]``.

    >>> tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "caf", "##e", "京", "20", "##24"])
    >>> tokenizer.encode("Café 京2024", add_special_tokens=False).offsets
    [(0, 3), (3, 4), (5, 6), (6, 8), (8, 10)]
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")

    def __init__(
        self,
        vocab: Iterable[str],
        do_lower_case: bool = True,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ) -> None:
        super().__init__(vocab, do_lower_case)
        self.strip_accents, self.tokenize_chinese_chars = strip_accents, tokenize_chinese_chars
        is_stripped = do_lower_case if strip_accents is None else strip_accents
        self._normal = _Normal(do_lower_case, is_stripped, tokenize_chinese_chars)

    def _tokenize(self, text):
        ids, offsets = [], []
        parts = [self._normal[character] for character in text]
        sources = [index for index, part in enumerate(parts) for _ in part]
        for word in _WORD.finditer("".join(parts)):
            for index, first, last in self._pieces_of_word(word[0], MAX_WORD):
                ids.append(index)
                offsets.append((sources[word.start() + first], sources[word.start() + last - 1] + 1))
        return ids, offsets


class _Normal(dict):
    """What a character becomes in steps 1 to 4; a word is put between spaces."""

    def __init__(self, is_lower: bool, is_stripped: bool, is_cut_at_chinese: bool) -> None:
        super().__init__()
        self.is_lower, self.is_stripped, self.is_cut_at_chinese = is_lower, is_stripped, is_cut_at_chinese

    def __missing__(self, character: str) -> str:
        self[character] = self._of(character)
        return self[character]

    def _of(self, character):
        if character in "\t\n\r":
            return " "
        if character == "\ufffd" or unicodedata.category(character) in _REMOVED:
            return ""
        if character.isspace():
            return " "
        parts = character
        if self.is_stripped:
            decomposed = unicodedata.normalize("NFD", character)
            parts = "".join(part for part in decomposed if unicodedata.category(part) != "Mn")
        if self.is_lower:
            parts = parts.lower()
        if self.is_cut_at_chinese and CHINESE.match(character):
            return f" {parts} "
        return "".join(f" {part} " if _is_punctuation(part) else part for part in parts)


def _is_punctuation(character):
    return character in string.punctuation or unicodedata.category(character)[0] == "P"
