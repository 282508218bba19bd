"""Text files -> one stream of character ids -> random windows for training, fixed ones held out."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paddle_rope.roformer.tokenization import CharTokenizer
from tasks.common.errors import InputError
from tasks.common.text_files import BLANKS, read_text, shown, split_lines
from tasks.language_model.demo_text import demo_documents

DEMO = "demo"  # in place of a file: generated text
JSON_SUFFIXES = (".jsonl", ".json")


def read_documents(path):
    """The documents of a file, in their order.

    Args:
        path: JSON lines (``.jsonl``, ``.json``) with a string ``text`` each, or plain text: empty lines part the
            documents; where there are none, each line is one.

    Returns:
        list of strings that are not empty.

    Raises:
        InputError: the file cannot be read, or a line is not of that form.
    """
    content, name = read_text(path)
    lines = split_lines(content)
    if Path(path).suffix in JSON_SUFFIXES:
        return [_text_of(line, f"{name}:{number}") for number, line in enumerate(lines, 1) if line.strip(BLANKS)]
    lines = [line.strip(BLANKS) for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    if "" not in lines:
        return lines
    return [block.strip("\n") for block in "\n".join(lines).split("\n\n") if block.strip("\n")]


def _text_of(line, place):
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: not JSON ({error}); write one object with 'text' a line") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise InputError(f"{place}: no string 'text' in {shown(record)}; write one object with 'text' a line")
    return record["text"]


class Corpus:
    """One stream of ids, parts of which are held out.

    The documents follow each other, each ended by ``[SEP]``; repeated ones are left out. Held out are stretches of
    ``held_out_length`` tokens (and one more to predict) at even distances, so that they are of all files; no window of
    training reaches into them.

    Args:
        documents: list of strings.
        vocab_min_count: rarer characters are ``[UNK]``. Held-out text counts too.
        length: tokens of a window of training.
        held_out_windows, held_out_length: how many stretches are held out, and their length.

    Attributes:
        tokenizer: :class:`~paddle_rope.CharTokenizer`.
        held_out: int64 ``[held_out_windows, held_out_length + 1]``.

    Raises:
        InputError: the text is too short for that.
    """

    def __init__(self, documents, vocab_min_count, length, held_out_windows, held_out_length):
        documents = list(dict.fromkeys(documents))
        self.tokenizer = CharTokenizer.from_corpus(documents, vocab_min_count)
        self.length = length
        end = [self.tokenizer.sep_token_id]
        parts = [np.array(self.tokenizer.encode(text, add_special_tokens=False).ids + end) for text in documents]
        self._ids = np.concatenate(parts).astype("int64") if parts else np.zeros(0, "int64")
        size = held_out_length + 1
        if self._ids.size < 2 * held_out_windows * size:
            raise InputError(
                f"text_files: {self._ids.size} characters, of which {held_out_windows} x {size} are to be held out: "
                f"give {2 * held_out_windows * size} or more, or a smaller held_out_windows"
            )
        distance = self._ids.size // held_out_windows
        chosen = np.arange(held_out_windows)[:, None] * distance + np.arange(size)
        self.held_out = self._ids[chosen]
        is_held_out = np.zeros(self._ids.size + 1, dtype="int64")
        is_held_out[chosen.ravel() + 1] = 1
        before = is_held_out.cumsum()  # held-out ids before each
        self._starts = np.flatnonzero(before[length + 1 :] == before[: -(length + 1)])
        if not self._starts.size:
            raise InputError(f"text_files: between held-out stretches no {length + 1} characters are left; give more")

    def training_windows(self, count, seed, step):
        """int64 ``[count, length + 1]``, drawn anew for each step; the same for the same ``seed`` and ``step``."""
        starts = np.random.default_rng([seed, step]).choice(self._starts, count)
        return self._ids[starts[:, None] + np.arange(self.length + 1)]

    def facts(self):
        """What a report says of the text: :class:`CorpusFacts`."""
        unknown = float((self._ids == self.tokenizer.unk_token_id).mean())
        training = self._ids.size - self.held_out.size
        return CorpusFacts(int(self._ids.size), int(training), int(self.held_out.size), len(self.tokenizer), unknown)


class CorpusFacts(NamedTuple):
    """Sizes of a :class:`Corpus` in tokens (characters, runs of white space, ends of documents)."""

    tokens: int
    training_tokens: int
    held_out_tokens: int
    vocabulary: int
    unknown_share: float


def load_corpus(run):
    """The :class:`Corpus` of a configuration.

    Args:
        run: :class:`tasks.language_model.arguments.LanguageModelArguments`.
    """
    documents = []
    for path in run.files():
        documents += demo_documents() if path == DEMO else read_documents(path)
    return Corpus(documents, run.vocab_min_count, run.length, run.held_out_windows, run.held_out_length)
