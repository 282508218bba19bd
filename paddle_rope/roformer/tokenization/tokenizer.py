"""Shared code of the tokenizers: vocabulary, special tokens, pairs, truncation, padding, decoding, and the files
``vocab.txt`` and ``tokenizer_config.json``, as our own tokenizers, PaddleNLP and Hugging Face write them."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from paddle_rope.files import read_json_object, replace_file, write_json
from paddle_rope.roformer.config import folder_of

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPACE = "[SPACE]"  # a run of white space; vocabularies that do not have it (BERT's) skip white space
PIECE = "##"  # begins a token that continues a word
VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
MAX_WORD = 100  # characters; BERT's WordPiece treats a longer word as unknown
OWN_CLASSES = ("CharTokenizer", "WordTokenizer", "WordPieceTokenizer")
_OF_BERT = ("BertTokenizer", "ElectraTokenizer", "ErnieTokenizer", "RoFormerv2Tokenizer")
# Tokenizer class of PaddleNLP and Hugging Face (without "Fast") -> our class that reads its vocabulary
KINDS = {"RoFormerTokenizer": "WordTokenizer", **dict.fromkeys(_OF_BERT, "WordPieceTokenizer")}
_CHINESE_WORD = re.compile("[\u4e00-\u9fff]{2,}")
_Tokenizer = TypeVar("_Tokenizer", bound="Tokenizer")


class Encoding(NamedTuple):
    """Tokens of one text or a pair of texts; for each token:

    Attributes:
        ids: its number in the vocabulary.
        offsets: its half-open range of characters (start, end) in its text. Special tokens have no characters: (0, 0).
        token_type_ids: its text, 0 or 1; ``[CLS]`` belongs to the first, ``[SEP]`` to the text that it ends.

    >>> Encoding(ids=[2, 6, 3], offsets=[(0, 0), (0, 1), (0, 0)], token_type_ids=[0, 0, 0]).ids
    [2, 6, 3]
    """

    ids: list
    offsets: list
    token_type_ids: list


class Tokenizer:
    """Base of the tokenizers, which define in ``_tokenize`` how a text is cut. ``[MASK]`` written in a text is cut like
    any other text.

    Args:
        vocab: tokens in the order of their ids, each once; holds ``[PAD]``, ``[UNK]``, ``[CLS]``, ``[SEP]``.
        do_lower_case: whether the vocabulary is uncased.

    Attributes:
        vocab, token_to_id: token of an id and id of a token.
        pad_token_id, unk_token_id, cls_token_id, sep_token_id: ids of special tokens.
        mask_token_id: id of ``[MASK]``, None where the vocabulary lacks it.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ("do_lower_case",)  # in tokenizer_config.json

    def __init__(self, vocab: Iterable[str], do_lower_case: bool = False) -> None:
        self.vocab = list(vocab)
        self.do_lower_case = do_lower_case
        self.token_to_id = {token: index for index, token in enumerate(self.vocab)}
        if len(self.token_to_id) != len(self.vocab):
            twice = next(token for token, count in Counter(self.vocab).items() if count > 1)
            raise ValueError(f"token {twice!r} occurs more than once in the vocabulary")
        missing = [token for token in (PAD, UNK, CLS, SEP) if token not in self.token_to_id]
        if missing:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}")
        self.pad_token_id, self.unk_token_id = self.token_to_id[PAD], self.token_to_id[UNK]
        self.cls_token_id, self.sep_token_id = self.token_to_id[CLS], self.token_to_id[SEP]
        self.mask_token_id = self.token_to_id.get(MASK)
        self._has_pieces = any(_is_piece(token) for token in self.vocab)
        self._longest_token = max(len(token) for token in self.vocab)

    @classmethod
    def from_vocab_file(
        cls: type[_Tokenizer], path: str | os.PathLike, do_lower_case: bool = True, **options: Any
    ) -> _Tokenizer:
        """The tokenizer of a ``vocab.txt``; raises ValueError if it is missing, not UTF-8 or not a vocabulary."""
        vocab = _read_vocab(path)
        try:
            return cls(vocab, do_lower_case, **options)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_pretrained(cls: type[_Tokenizer], folder: str | os.PathLike) -> _Tokenizer:
        """The tokenizer of this kind in a folder, or of an encoder that comes with the package (``"small"``); errors as
        in :func:`load_tokenizer`, which also detects the kind."""
        folder = folder_of(folder)
        kind, settings = read_settings(folder)
        if kind != cls.__name__:
            raise ValueError(f"{folder}: holds a {kind}, not a {cls.__name__}; read it with load_tokenizer")
        options = {name: settings[name] for name in cls.OPTIONS if name in settings}
        for name, value in options.items():
            if not isinstance(value, bool) and not (name == "strip_accents" and value is None):
                raise ValueError(f"{Path(folder) / CONFIG_FILE}: {name} is {value!r}; make it true or false")
        return cls.from_vocab_file(Path(folder) / VOCAB_FILE, **options)

    def save_pretrained(self, folder: str | os.PathLike, written_class: str | None = None) -> None:
        """Write the files into ``folder``, which is made if it is missing; ``written_class`` is the ``tokenizer_class``
        for a folder of another library, by default our own.
        """
        options = {name: getattr(self, name) for name in self.OPTIONS}
        write_json(Path(folder) / CONFIG_FILE, {"tokenizer_class": written_class or type(self).__name__, **options})
        replace_file(Path(folder) / VOCAB_FILE, "".join(f"{token}\n" for token in self.vocab).encode("utf-8"))

    def fill_up(self, size: int) -> None:
        """Add unused tokens until there are ``size``, for a model that has more embeddings than tokens."""
        for index in range(len(self.vocab), size):
            self.token_to_id[f"[unused {index}]"] = index
            self.vocab.append(f"[unused {index}]")

    def __len__(self) -> int:
        return len(self.vocab)

    def encode(
        self, text: str, pair: str | None = None, max_length: int | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """The :class:`Encoding` of ``[CLS] text [SEP]``, or of ``[CLS] text [SEP] pair [SEP]``.

        Args:
            text, pair: strings, otherwise ValueError.
            max_length: longest result in tokens, including special tokens. Tokens are dropped from the end; in a pair
                one by one from the longer text, or from the second if both are equally long.
            add_special_tokens: False leaves out ``[CLS]`` and ``[SEP]``.
        """
        texts = [text] if pair is None else [text, pair]
        for part in texts:
            if not isinstance(part, str):
                raise ValueError(f"encode takes a string, got {type(part).__name__}; lists go to encode_batch")
        tokens = [self._tokenize(part) for part in texts]
        if max_length is not None:
            num_special = len(texts) + 1 if add_special_tokens else 0
            if max_length < num_special:
                raise ValueError(f"max_length {max_length} does not hold the {num_special} special tokens; give more")
            kept = _kept_lengths([len(ids) for ids, _ in tokens], max_length - num_special)
            tokens = [(ids[:length], offsets[:length]) for (ids, offsets), length in zip(tokens, kept)]
        result = Encoding([], [], [])
        for token_type, (ids, offsets) in enumerate(tokens):
            if add_special_tokens:
                first = [] if token_type else [self.cls_token_id]
                ids = [*first, *ids, self.sep_token_id]
                offsets = [(0, 0)] * len(first) + [*offsets, (0, 0)]
            result.ids.extend(ids)
            result.offsets.extend(offsets)
            result.token_type_ids.extend([token_type] * len(ids))
        return result

    def encode_batch(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        max_length: int | None = None,
        padding_side: str = "right",
    ) -> dict[str, Any]:
        """The encodings of texts, or pairs of texts, padded to the longest.

        Args:
            texts, pairs: equally long lists of strings, otherwise ValueError.
            max_length: as in :meth:`encode`.
            padding_side: ``"right"``, or ``"left"`` so that every text ends in the last column, for generation.

        Returns:
            dict of arrays ``[batch, seq]``: ``input_ids`` and ``token_type_ids`` int64, ``attention_mask`` bool, False
            for padding; and ``offsets``, a list of ``seq`` pairs for each text, (0, 0) for padding.
        """
        if isinstance(texts, str) or isinstance(pairs, str):
            raise ValueError("encode_batch takes lists of strings, got one string; write [text], or use encode")
        if padding_side not in ("left", "right"):
            raise ValueError(f'padding_side must be "left" or "right", got {padding_side!r}')
        texts = list(texts)
        seconds: list[Any] = [None] * len(texts) if pairs is None else list(pairs)
        if len(seconds) != len(texts):
            raise ValueError(f"{len(texts)} texts but {len(seconds)} pairs; give one second text for each")
        encodings = [self.encode(text, pair, max_length) for text, pair in zip(texts, seconds)]
        longest = max((len(encoding.ids) for encoding in encodings), default=0)

        def padded(values, filling):
            padding = [filling] * (longest - len(values))
            return padding + values if padding_side == "left" else values + padding

        def array(rows, dtype):
            return np.array(rows, dtype=dtype).reshape(len(texts), longest)

        return {
            "input_ids": array([padded(one.ids, self.pad_token_id) for one in encodings], np.int64),
            "token_type_ids": array([padded(one.token_type_ids, 0) for one in encodings], np.int64),
            "attention_mask": array([padded([True] * len(one.ids), False) for one in encodings], bool),
            "offsets": [padded(one.offsets, (0, 0)) for one in encodings],
        }

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of tokens: ``##`` pieces continue their word, ``[SPACE]`` is a space; ``[UNK]`` is never left out.

        A vocabulary with ``##`` pieces but without ``[SPACE]`` loses white space, so a space is put between words of
        ASCII letters and digits, which only white space can have separated.
        """
        space_words = self._has_pieces and SPACE not in self.token_to_id
        text = ""
        for token in (self.vocab[index] for index in ids):
            if token in (PAD, CLS, SEP, MASK):
                text += "" if skip_special_tokens else token
            elif token == SPACE:
                text += " "
            elif _is_piece(token):
                text += token[len(PIECE) :]
            elif space_words and _is_ascii_word(text[-1:]) and _is_ascii_word(token[:1]):
                text += f" {token}"
            else:
                text += token
        return text

    def _tokenize(self, text):
        """(ids, offsets) of a text, without special tokens."""
        raise NotImplementedError

    def _pieces_of_word(self, word, longest=math.inf):
        """WordPiece: (id, start, end) of the longest tokens from left to right; one ``[UNK]`` where none fits, and for
        a word longer than ``longest``."""
        if len(word) > longest:
            return [(self.unk_token_id, 0, len(word))]
        pieces, start = [], 0
        while start < len(word):
            prefix = PIECE if start else ""
            for end in range(min(len(word), start + self._longest_token), start, -1):
                index = self.token_to_id.get(prefix + word[start:end])
                if index is not None:
                    pieces.append((index, start, end))
                    start = end
                    break
            else:
                return [(self.unk_token_id, 0, len(word))]
        return pieces


def _read_vocab(path: str | os.PathLike) -> list[str]:
    """The tokens of a ``vocab.txt``, one per line; raises ValueError if it cannot be read or is not UTF-8."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give a vocabulary in UTF-8, one token a line") from None
    # splitlines() would also split at U+2028, which BERT's vocabularies hold as a token
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]


def read_settings(folder: str | os.PathLike) -> tuple[str, dict[str, Any]]:
    """The name of our class for the tokenizer of a folder, and its settings; raises ValueError as in
    :func:`load_tokenizer`.

    PaddleNLP's ``RoFormerTokenizer`` cuts words if its ``use_jieba`` is true; Hugging Face's always does and has no
    such key. Without a ``tokenizer_class`` (original checkpoints), a vocabulary with words of two or
    more Chinese characters is for a :class:`WordTokenizer`. BERT's tokenizers become a :class:`WordPieceTokenizer`, or
    a :class:`CharTokenizer` if the vocabulary has no ``##`` pieces, without which words of letters are unknown.
    """
    path, vocab = Path(folder) / CONFIG_FILE, Path(folder) / VOCAB_FILE
    if not path.is_file() and not vocab.is_file():
        raise ValueError(f"{folder}: has no {VOCAB_FILE}; give a folder with the files of a tokenizer")
    settings = read_json_object(path) if path.is_file() else {}
    name = settings.get("tokenizer_class")
    if name in OWN_CLASSES:
        return name, {"do_lower_case": None, **settings}
    if name is None:
        has_words = any(_CHINESE_WORD.fullmatch(token) for token in _read_vocab(vocab))
        kind = "WordTokenizer" if has_words else "WordPieceTokenizer"
    elif isinstance(name, str) and name.removesuffix("Fast") in KINDS:
        kind = KINDS[name.removesuffix("Fast")]
    else:
        known = ", ".join((*OWN_CLASSES, *KINDS))
        raise ValueError(f"{path}: tokenizer_class is {name!r}; correct it to one of {known}")
    if kind == "WordPieceTokenizer" or not settings.get("use_jieba", True):
        kind = "WordPieceTokenizer" if any(map(_is_piece, _read_vocab(vocab))) else "CharTokenizer"
    return kind, settings


def _is_piece(token):
    return token.startswith(PIECE) and len(token) > len(PIECE)


def _is_ascii_word(character):
    return character.isascii() and character.isalnum()


def _kept_lengths(lengths, most):
    """Lengths of one or two texts after dropping tokens one by one from the longer, or from the second if equal."""
    if len(lengths) == 1:
        return [min(lengths[0], most)]
    first = min(lengths[0], max(most - lengths[1], (most + 1) // 2))
    return [first, min(lengths[1], most - first)]
