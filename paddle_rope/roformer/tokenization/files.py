"""The files of a tokenizer: ``vocab.txt`` and ``tokenizer_config.json``, as our own tokenizers, PaddleNLP and Hugging
Face write them."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from paddle_rope.json_files import read_json_object

VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
OWN_CLASSES = ("CharTokenizer", "WordTokenizer")
# Classes of PaddleNLP and Hugging Face, and ours that reads their vocabulary
KINDS = {
    **{name: name for name in OWN_CLASSES},
    **dict.fromkeys(("RoFormerTokenizer", "RoFormerTokenizerFast"), "WordTokenizer"),
    **dict.fromkeys(("BertTokenizer", "BertTokenizerFast", "RoFormerv2Tokenizer"), "CharTokenizer"),
}
_CHINESE_WORD = re.compile("[\u4e00-\u9fff]{2,}")


def read_vocab(path: str | os.PathLike) -> list[str]:
    """Tokens of a ``vocab.txt``: one a line, the line number (from 0) is the id.

    Raises:
        ValueError: there is no such file, it cannot be read, or it is not UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give a vocabulary in UTF-8, one token a line") from None
    lines = text.split("\n")  # splitlines() would also split at U+2028, which BERT's vocabularies hold as a token
    if lines[-1] == "":
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def read_settings(folder: str | os.PathLike) -> tuple[str, bool]:
    """The name of our class for the tokenizer of a folder, and ``do_lower_case``.

    PaddleNLP's ``RoFormerTokenizer`` cuts words if its ``use_jieba`` is true; Hugging Face's always does and has no
    such key. Without a ``tokenizer_class`` (older folders, original checkpoints), a vocabulary with words of two or
    more Chinese characters is for a :class:`WordTokenizer`, any other for a :class:`CharTokenizer`, and text is
    lower-cased.

    Args:
        folder: a folder that one of our tokenizers, PaddleNLP or Hugging Face wrote.

    Raises:
        ValueError: a file is missing, damaged, or names a tokenizer that is none of ours.
    """
    path, vocab = Path(folder) / CONFIG_FILE, Path(folder) / VOCAB_FILE
    if not path.is_file() and not vocab.is_file():
        raise ValueError(f"{folder}: has no {VOCAB_FILE}; give a folder with the files of a tokenizer")
    settings = read_json_object(path) if path.is_file() else {}
    name = settings.get("tokenizer_class")
    if name is None:
        has_words = any(_CHINESE_WORD.fullmatch(token) for token in read_vocab(vocab))
        kind = "WordTokenizer" if has_words else "CharTokenizer"
    elif isinstance(name, str) and name in KINDS:
        kind = KINDS[name]
    else:
        raise ValueError(
            f"{path}: tokenizer_class is {name!r}, not one of {', '.join(KINDS)}; correct it, or read {VOCAB_FILE} "
            f"with from_vocab_file of {' or '.join(OWN_CLASSES)}"
        )
    if name not in OWN_CLASSES and not settings.get("use_jieba", True):
        kind = "CharTokenizer"
    do_lower_case = settings.get("do_lower_case", None if name in OWN_CLASSES else True)
    if not isinstance(do_lower_case, bool):
        raise ValueError(f"{path}: do_lower_case is {do_lower_case!r}; make it true or false")
    return kind, do_lower_case


def write_tokenizer(folder: str | os.PathLike, kind: str, vocab: Iterable[str], do_lower_case: bool) -> None:
    """Write both files into ``folder``, which is made where it is missing; ``kind`` is the ``tokenizer_class``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"tokenizer_class": kind, "do_lower_case": do_lower_case}
    (folder / VOCAB_FILE).write_bytes("".join(f"{token}\n" for token in vocab).encode("utf-8"))
    (folder / CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
