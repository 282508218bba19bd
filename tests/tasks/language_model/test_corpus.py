"""The stream of ids, and what is held out of it."""

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.language_model.corpus import Corpus

# Every character occurs once: an id tells where it is.
DISTINCT = "".join(chr(0x4E00 + number) for number in range(600))


def distinct_corpus(length=5, held_out_windows=6, held_out_length=20):
    return Corpus([DISTINCT], 1, length, held_out_windows, held_out_length)


def test_no_window_of_training_reaches_into_held_out_text():
    corpus = distinct_corpus()
    windows = corpus.training_windows(4000, seed=0, step=1)
    assert corpus.held_out.shape == (6, 21)
    assert not set(windows.ravel()) & set(corpus.held_out.ravel())
    assert set(windows.ravel()) | set(corpus.held_out.ravel()) == set(range(3, 3 + 1)) | set(range(6, 606))  # [SEP]


def test_windows_and_held_out_texts_are_stretches_of_the_text():
    corpus = distinct_corpus()
    position = {corpus.tokenizer.token_to_id[character]: place for place, character in enumerate(DISTINCT)}
    position[corpus.tokenizer.sep_token_id] = len(DISTINCT)
    for texts in (corpus.training_windows(50, seed=0, step=1), corpus.held_out):
        places = np.vectorize(position.get)(texts)
        assert (np.diff(places, axis=1) == 1).all()


def test_windows_depend_on_seed_and_step_alone(corpus):
    other = Corpus(["".join(corpus.tokenizer.vocab[6:]) * 40], 1, 8, 4, 32)
    other.training_windows(3, seed=9, step=9)
    first = other.training_windows(3, seed=1, step=2)
    assert (first == other.training_windows(3, seed=1, step=2)).all()
    assert (first != other.training_windows(3, seed=1, step=3)).any()
    assert (first != other.training_windows(3, seed=2, step=2)).any()


def test_facts_count_tokens_and_ends_of_documents():
    facts = Corpus([DISTINCT[:300], DISTINCT[300:]], 1, 5, 2, 20).facts()
    sizes = {"tokens": 602, "held_out_tokens": 42, "training_tokens": 560, "vocabulary": 606}
    assert facts == {**sizes, "unknown_share": 0}


def test_rare_characters_are_unknown():
    facts = Corpus(["一二" * 100 + "三"], 2, 5, 2, 20).facts()
    assert facts["unknown_share"] == 1 / 202


@pytest.mark.parametrize(
    "documents, said", [([], "0 characters"), ([DISTINCT[:200]], "201 characters, of which 6 x 21")]
)
def test_text_too_short_to_hold_something_out_is_an_error(documents, said):
    with pytest.raises(InputError, match=said):
        Corpus(documents, 1, 5, 6, 20)


def test_windows_longer_than_what_lies_between_held_out_stretches_are_an_error():
    with pytest.raises(InputError, match="no 301 characters are left"):
        distinct_corpus(length=300)
