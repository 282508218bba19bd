"""Character tokenizer with exact character offsets."""

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPACE = "[SPACE]"  # a run of white space; vocabularies that do not have it (BERT's) skip white space

VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"

# One unit: a run of white space, a run of ASCII letters and digits, or one character with the marks that belong to it
# (combining marks, variation selectors, skin tones, and what a zero-width joiner ties on).
_MARK = "[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
_UNIT = re.compile(rf"\s+|[A-Za-z0-9]+(?!{_MARK})|[^\s]{_MARK}*(?:(?<=\u200d)[^\s]{_MARK}*)*")


class Encoding(NamedTuple):
    """Tokens of one text: ``ids`` and, for each, the half-open characters ``offsets`` it stands for.

    Special tokens stand for no character: their offsets are (0, 0).
    """

    ids: list
    offsets: list


class CharTokenizer:
    """One token a character, so that any span of characters is a span of tokens.

    Exceptions, each with exact offsets: a run of white space is one token; a character keeps its combining marks,
    variation selectors and joined emoji; where the vocabulary has pieces with ``##`` (BERT's), runs of ASCII letters
    and digits are cut into its longest pieces.

    A character is looked up as it is, then in its NFKC form (full-width to half-width), else it is ``[UNK]``.

    Args:
        vocab: tokens in the order of their ids; holds ``[PAD]``, ``[UNK]``, ``[CLS]``, ``[SEP]``.
        do_lower_case: look up lower-cased characters, as uncased vocabularies (BERT's) want.

    Raises:
        ValueError: a token occurs twice, or a special token is missing.
    """

    def __init__(self, vocab, do_lower_case=False):
        self.vocab = list(vocab)
        self.do_lower_case = do_lower_case
        self.token_to_id = {token: index for index, token in enumerate(self.vocab)}
        if len(self.token_to_id) != len(self.vocab):
            twice = next(token for token, count in Counter(self.vocab).items() if count > 1)
            raise ValueError(f"token {twice!r} occurs more than once in the vocabulary")
        missing = [token for token in (PAD, UNK, CLS, SEP) if token not in self.token_to_id]
        if missing:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}")
        self.pad_token_id = self.token_to_id[PAD]
        self.unk_token_id = self.token_to_id[UNK]
        pieces = [token for token in self.vocab if token.startswith("##") and len(token) > 2]
        self._has_pieces = bool(pieces)
        self._longest_piece = max((len(token) for token in self.vocab), default=0)

    @classmethod
    def from_corpus(cls, texts, min_count=1):
        """Build a vocabulary of the characters that occur at least ``min_count`` times, most frequent first."""
        counts = Counter(text[start:end] for text in texts for start, end in _units(text, split_words=True))
        characters = [unit for unit, count in counts.items() if count >= min_count and not unit.isspace()]
        characters.sort(key=lambda unit: (-counts[unit], unit))
        return cls([PAD, UNK, CLS, SEP, MASK, SPACE, *characters])

    @classmethod
    def from_vocab_file(cls, path, do_lower_case=True):
        """Read a ``vocab.txt``: one token a line, the line number (from 0) is the id."""
        lines = Path(path).read_bytes().decode("utf-8").split("\n")
        if lines[-1] == "":
            lines.pop()
        return cls([line.rstrip("\r") for line in lines], do_lower_case)

    @classmethod
    def from_pretrained(cls, folder):
        """Read what :meth:`save_pretrained` wrote."""
        settings = json.loads((Path(folder) / CONFIG_FILE).read_text(encoding="utf-8"))
        return cls.from_vocab_file(Path(folder) / VOCAB_FILE, settings["do_lower_case"])

    def save_pretrained(self, folder):
        """Write ``vocab.txt`` and ``tokenizer_config.json`` into ``folder``."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"tokenizer_class": type(self).__name__, "do_lower_case": self.do_lower_case}
        (folder / VOCAB_FILE).write_bytes("".join(f"{token}\n" for token in self.vocab).encode("utf-8"))
        (folder / CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def __len__(self):
        return len(self.vocab)

    def encode(self, text, add_special_tokens=True):
        """Tokenize a text: an :class:`Encoding`, with ``[CLS]`` first and ``[SEP]`` last unless switched off."""
        ids, offsets = [], []
        if add_special_tokens:
            ids.append(self.token_to_id[CLS])
            offsets.append((0, 0))
        for start, end in _units(text, split_words=not self._has_pieces):
            unit = text[start:end]
            if unit.isspace():
                if SPACE in self.token_to_id:
                    ids.append(self.token_to_id[SPACE])
                    offsets.append((start, end))
            elif self._has_pieces and unit.isascii() and unit.isalnum():
                for piece_id, piece_start, piece_end in self._pieces(unit):
                    ids.append(piece_id)
                    offsets.append((start + piece_start, start + piece_end))
            else:
                ids.append(self._lookup(unit))
                offsets.append((start, end))
        if add_special_tokens:
            ids.append(self.token_to_id[SEP])
            offsets.append((0, 0))
        return Encoding(ids, offsets)

    def _lookup(self, unit):
        if self.do_lower_case:
            unit = unit.lower()
        index = self.token_to_id.get(unit)
        if index is None:
            unit = unicodedata.normalize("NFKC", unit)
            index = self.token_to_id.get(unit.lower() if self.do_lower_case else unit, self.unk_token_id)
        return index

    def _pieces(self, word):
        """Longest pieces of an ASCII word, left to right (WordPiece); a word that they do not cover is [UNK]."""
        word = word.lower() if self.do_lower_case else word
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                index = self.token_to_id.get(prefix + word[start:end])
                if index is not None:
                    pieces.append((index, start, end))
                    start = end
                    break
            else:
                return [(self.unk_token_id, 0, len(word))]
        return pieces


def _units(text, split_words):
    """Half-open characters of each unit of ``text``; ``split_words`` cuts ASCII words into characters."""
    for match in _UNIT.finditer(text):
        start, end = match.span()
        if split_words and text[start:end].isascii() and not text[start].isspace():
            yield from ((index, index + 1) for index in range(start, end))
        else:
            yield start, end
