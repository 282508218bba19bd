"""The files of a tokenizer: ``vocab.txt`` and ``tokenizer_config.json``, as our own tokenizers, PaddleNLP and Hugging
Face write them."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
OWN_CLASSES = ("CharTokenizer", "WordTokenizer")
BERT_LIKE_CLASSES = ("BertTokenizer", "BertTokenizerFast", "RoFormerv2Tokenizer")
ROFORMER_CLASSES = ("RoFormerTokenizer", "RoFormerTokenizerFast")
_CHINESE_WORD = re.compile("[\u4e00-\u9fff]{2,}")


def read_vocab(path: str | os.PathLike) -> list[str]:
    """Tokens of a ``vocab.txt``: one a line, the line number (from 0) is the id.

    Raises:
        ValueError: there is no such file, it cannot be read, or it is not UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; give a vocabulary with one token a line") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give a vocabulary in UTF-8, one token a line") from None
    lines = text.split("\n")  # splitlines() would also split at U+2028, which BERT's vocabularies hold as a token
    if lines[-1] == "":
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def read_settings(folder: str | os.PathLike) -> tuple[str, bool]:
    """What ``tokenizer_config.json`` asks for.

    PaddleNLP's ``RoFormerTokenizer`` says in ``use_jieba`` whether it cuts words; Hugging Face's always does and has no
    such key. Where nothing is said (older folders, original checkpoints), a vocabulary with words of two or more
    Chinese characters is a :class:`WordTokenizer`'s, others are a :class:`CharTokenizer`'s, and text is lower-cased.

    Args:
        folder: a folder that one of our tokenizers, PaddleNLP or Hugging Face wrote.

    Returns:
        (name of our class, do_lower_case).

    Raises:
        ValueError: a file is missing, damaged, or names a tokenizer that is none of ours.
    """
    path = Path(folder) / CONFIG_FILE
    by_hand = f"or read {VOCAB_FILE} with from_vocab_file of {' or '.join(OWN_CLASSES)}"
    try:
        settings = json.loads(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if not (Path(folder) / VOCAB_FILE).is_file():
            raise ValueError(f"{folder}: has no {VOCAB_FILE}; give a folder with the files of a tokenizer") from None
        settings = {}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not JSON ({error}); copy the folder again, {by_hand}") from None
    settings = settings if isinstance(settings, dict) else {}
    name = settings.get("tokenizer_class")
    lower = settings.get("do_lower_case", None if name in OWN_CLASSES else True)
    if name is None:
        has_words = any(_CHINESE_WORD.fullmatch(token) for token in read_vocab(Path(folder) / VOCAB_FILE))
        kind = "WordTokenizer" if has_words and settings.get("use_jieba", True) else "CharTokenizer"
    elif name in OWN_CLASSES:
        kind = name
    elif name in ROFORMER_CLASSES:
        kind = "WordTokenizer" if settings.get("use_jieba", True) else "CharTokenizer"
    elif name in BERT_LIKE_CLASSES:
        kind = "CharTokenizer"
    else:
        known = ", ".join((*OWN_CLASSES, *ROFORMER_CLASSES, *BERT_LIKE_CLASSES))
        raise ValueError(f"{path}: tokenizer_class is {name!r}, not one of {known}; correct it, {by_hand}")
    if not isinstance(lower, bool):
        raise ValueError(f"{path}: do_lower_case is {lower!r}; make it true or false")
    return kind, lower


def write_tokenizer(folder: str | os.PathLike, kind: str, vocab: Iterable[str], do_lower_case: bool) -> None:
    """Write both files into ``folder``, which is made where it is missing; ``kind`` is the ``tokenizer_class``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"tokenizer_class": kind, "do_lower_case": do_lower_case}
    (folder / VOCAB_FILE).write_bytes("".join(f"{token}\n" for token in vocab).encode("utf-8"))
    (folder / CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
