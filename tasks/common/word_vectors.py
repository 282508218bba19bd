"""The word vectors of an encoder's folder. A model with word features starts from them, as models of Chinese NER have
done since Lattice LSTM (arXiv 1805.02023), and so knows words that no labeled text has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save

from paddle_rope.roformer.checkpoints.tensor_files import read_tensors
from paddle_rope.roformer.config import folder_of
from paddle_rope.tasks.common.errors import damage_reported
from paddle_rope.tasks.common.model_folder import COPY

WORDS_FILE = "words.txt"  # one a line
VECTORS_FILE = "word_vectors.safetensors"
SIZE = 64  # of a vector
_TENSOR = "vectors"


class WordVectors(NamedTuple):
    """Distinct words and their vectors."""

    words: list[str]
    vectors: np.ndarray  # [words, SIZE], of any numeric dtype and scale

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> WordVectors | None:
        """Read the word vectors in a folder, or of an encoder that comes with the package; None if there are none.
        Raises InputError if words and vectors do not belong together, or are not finite."""
        path = Path(folder_of(folder)) / VECTORS_FILE
        if not path.is_file():
            return None
        with damage_reported(path, COPY):
            words = path.with_name(WORDS_FILE).read_text(encoding="utf-8").split()
            return cls.checked(words, read_tensors(path)[_TENSOR])

    @classmethod
    def checked(cls, words: list[str], vectors: np.ndarray) -> WordVectors:
        """The words with their vectors ``[words, SIZE]``; raises ValueError if words repeat, or vectors have another
        shape or are not finite and different."""
        if len(set(words)) < len(words) or vectors.shape != (len(words), SIZE):
            raise ValueError(f"vectors {list(vectors.shape)} for {len(set(words))} words, expected {SIZE} numbers each")
        if not 0 < vectors.std(dtype=np.float64) < np.inf:
            raise ValueError("vectors without finite, different numbers")
        return cls(words, vectors)

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write ``words.txt`` and ``word_vectors.safetensors`` into a folder."""
        (Path(folder) / WORDS_FILE).write_text("\n".join([*self.words, ""]), encoding="utf-8")
        (Path(folder) / VECTORS_FILE).write_bytes(save({_TENSOR: self.vectors}))
