"""Tokenizers by character and by word, and :func:`load_tokenizer`, which reads either kind from a folder."""

import os

from paddle_rope.roformer.config import folder_of
from paddle_rope.roformer.tokenization.char_tokenizer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Encoding, read_settings
from paddle_rope.roformer.tokenization.word_tokenizer import WordTokenizer


def load_tokenizer(folder: str | os.PathLike) -> CharTokenizer | WordTokenizer:
    """Read the tokenizer of ``folder``, or of an encoder that comes with the package (``"small"``); ``tokenizer_class``
    in its ``tokenizer_config.json`` decides the kind.

    ``CharTokenizer`` and ``WordTokenizer`` are read as they were saved. Folders of PaddleNLP and Hugging Face that hold
    a ``vocab.txt``: ``RoFormerTokenizer`` becomes a :class:`WordTokenizer`, or with ``"use_jieba": false`` a
    :class:`CharTokenizer`; ``BertTokenizer`` and ``RoFormerv2Tokenizer`` become a :class:`CharTokenizer`.

    Raises:
        ValueError: a file is missing or damaged, or names another tokenizer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     CharTokenizer.from_corpus(["北京"]).save_pretrained(folder)
    ...     load_tokenizer(folder).vocab[-2:]
    ['京', '北']
    """
    kind, _ = read_settings(folder_of(folder))
    return (WordTokenizer if kind == "WordTokenizer" else CharTokenizer).from_pretrained(folder)
