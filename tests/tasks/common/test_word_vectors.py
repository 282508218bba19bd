"""Word vectors in the folder of an encoder: written, read, and refused if words and vectors do not fit."""

import numpy as np
import pytest

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.word_vectors import SIZE, VECTORS_FILE, WORDS_FILE, WordVectors

WORDS, VECTORS = ["北京", "大学", "，"], np.arange(3 * SIZE, dtype=np.int8).reshape(3, SIZE)


@pytest.fixture
def folder(tmp_path):
    WordVectors(WORDS, VECTORS).save_pretrained(tmp_path)
    return tmp_path


def test_they_are_read_as_they_were_written(folder):
    words, vectors = WordVectors.from_pretrained(folder)
    assert words == WORDS and vectors.dtype == np.int8 and (vectors == VECTORS).all()
    (folder / VECTORS_FILE).unlink()
    assert WordVectors.from_pretrained(folder) is None


def test_words_of_one_kind_are_near_each_other_in_those_of_the_small_encoder():
    words, vectors = WordVectors.from_pretrained("small")
    unit = vectors / np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
    near, club, law = (unit[words.index(word)] for word in ("曼联", "切尔西", "条例"))
    assert near @ club > 0.5 > near @ law


@pytest.mark.parametrize("words, vectors, found", [
    ("北京\n大学\n", VECTORS, "vectors [3, 64] for 2 words"),
    ("北京\n大学\n北京\n", VECTORS, "vectors [3, 64] for 2 words"),
    ("北京\n大学\n，\n", VECTORS[:, :2], "vectors [3, 2] for 3 words"),
    ("北京\n大学\n，\n", VECTORS * np.float16(np.nan), "without finite"),
    ("北京\n大学\n，\n", VECTORS * 0, "without finite"),
    (None, VECTORS, "FileNotFoundError"),
    ("北京\n大学\n，\n", None, "damaged"),
])  # fmt: skip
def test_what_does_not_belong_together_is_refused(folder, words, vectors, found):
    if vectors is None:
        (folder / VECTORS_FILE).write_bytes(b"x")
    else:
        WordVectors(["unused"], vectors).save_pretrained(folder)
    (folder / WORDS_FILE).unlink()
    if words is not None:
        (folder / WORDS_FILE).write_text(words, encoding="utf-8")
    with pytest.raises(InputError, match=VECTORS_FILE) as refused:
        WordVectors.from_pretrained(folder)
    assert found in str(refused.value)
