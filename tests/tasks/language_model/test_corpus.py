"""The stream of ids, and what is held out of it."""

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.language_model.corpus import Corpus

# Every character occurs once: an id tells where it is.
DISTINCT = "".join(chr(0x4E00 + number) for number in range(600))


def distinct_corpus(documents=(DISTINCT,), length=5):
    return Corpus(list(documents), 1, length, held_out_windows=6, held_out_length=20)


def test_windows_are_stretches_of_the_text_and_none_reaches_into_held_out_text():
    corpus = distinct_corpus()
    windows = corpus.training_windows(4000, seed=0, step=1)
    places = {corpus.tokenizer.token_to_id[character]: place for place, character in enumerate(DISTINCT)}
    places[corpus.tokenizer.sep_token_id] = len(DISTINCT)
    windows, held_out = (np.vectorize(places.get)(texts) for texts in (windows, corpus.held_out))
    assert windows.shape == (4000, 6) and held_out.shape == (6, 21)
    assert all((np.diff(texts, axis=1) == 1).all() for texts in (windows, held_out))
    assert not set(windows.ravel()) & set(held_out.ravel())
    assert set(windows.ravel()) | set(held_out.ravel()) == set(range(601))


def test_windows_depend_on_seed_and_step_alone():
    drawn = {
        (seed, step, again): distinct_corpus().training_windows(3, seed, step).tobytes()
        for seed, step, again in ((1, 2, 0), (1, 2, 1), (1, 3, 0), (2, 2, 0))
    }
    assert drawn[1, 2, 0] == drawn[1, 2, 1] and len(set(drawn.values())) == 3


def test_facts_count_tokens_ends_of_documents_and_unknown_characters():
    facts = distinct_corpus([DISTINCT[:300], DISTINCT[300:]]).facts()
    sizes = {"tokens": 602, "held_out_tokens": 126, "training_tokens": 476, "vocabulary": 606}
    assert facts == {**sizes, "unknown_share": 0}
    assert Corpus(["一二" * 100 + "三"], 2, 5, 2, 20).facts()["unknown_share"] == 1 / 202


@pytest.mark.parametrize("documents, length, said", [
    ([], 5, "0 characters"), ([DISTINCT[:200]], 5, "201 characters"), ([DISTINCT], 300, "no 301 characters are left"),
])  # fmt: skip
def test_text_that_is_too_short_is_refused(documents, length, said):
    with pytest.raises(InputError, match=said):
        distinct_corpus(documents, length)
