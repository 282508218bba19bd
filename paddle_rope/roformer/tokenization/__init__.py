"""Tokenizers by character, word and word piece, and :func:`load_tokenizer`, which reads any of them from a folder."""

import os

from paddle_rope.roformer.config import folder_of
from paddle_rope.roformer.tokenization.char_tokenizer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Encoding, Tokenizer, read_settings
from paddle_rope.roformer.tokenization.word_tokenizer import WordTokenizer
from paddle_rope.roformer.tokenization.wordpiece_tokenizer import WordPieceTokenizer


def load_tokenizer(folder: str | os.PathLike) -> Tokenizer:
    """Read the tokenizer of ``folder``, or of an encoder that comes with the package (``"small"``); ``tokenizer_class``
    in its ``tokenizer_config.json`` decides the kind.

    Our own tokenizers are read as they were saved. Folders of PaddleNLP and Hugging Face that hold a ``vocab.txt``:
    ``RoFormerTokenizer`` becomes a :class:`WordTokenizer`; the tokenizers of BERT, ELECTRA, ERNIE and RoFormerV2, and
    ``RoFormerTokenizer`` with ``"use_jieba": false``, become a :class:`WordPieceTokenizer`, or without ``##`` pieces in
    the vocabulary a :class:`CharTokenizer`. Raises ValueError if a file is missing or damaged, or names another
    tokenizer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     CharTokenizer.from_corpus(["北京"]).save_pretrained(folder)
    ...     load_tokenizer(folder).vocab[-2:]
    ['京', '北']
    """
    kinds = {one.__name__: one for one in (CharTokenizer, WordTokenizer, WordPieceTokenizer)}
    return kinds[read_settings(folder_of(folder))[0]].from_pretrained(folder)
