"""Which texts are selected: by entropy, each of near duplicates once."""

import math

import numpy as np
import pytest

from tasks.ner.examples import Entity
from tasks.ner.prediction.selection import DistinctTexts, rank, uncertainty


def candidate(probability):
    return Entity(0, 1, "t", math.log(probability / (1 - probability)), probability)


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.5, 0.9, 0.9999])
def test_uncertainty_of_a_span_is_its_binary_entropy(probability):
    entropy = -probability * math.log(probability) - (1 - probability) * math.log(1 - probability)
    assert uncertainty([candidate(probability)]) == pytest.approx(entropy, rel=1e-9)


def test_uncertainty_of_a_text_is_the_joint_entropy_of_its_spans():
    probabilities = [0.2, 0.6, 0.95]
    joint = np.ones(1)
    for probability in probabilities:
        joint = np.concatenate([joint * probability, joint * (1 - probability)])
    assert uncertainty(map(candidate, probabilities)) == pytest.approx(-(joint * np.log(joint)).sum())
    assert uncertainty([]) == 0


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_a_sure_span_has_no_entropy(probability):
    assert uncertainty([Entity(0, 1, "t", 99.0, probability)]) == 0


TEXTS = ["王明去年在青川市工作。", "天气很好，适合出门。", "王明去年在青川市工作！", "  ", "", "新开的书店在哪里？"]


def test_the_most_uncertain_come_first_without_empty_texts_and_near_duplicates():
    assert rank(TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6) == [2, 5, 1]
    assert rank(TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 2) == [2, 5]


def test_the_first_of_equals_is_taken():
    assert rank(TEXTS, [1.0] * 6, 6) == [0, 1, 5]


def test_near_duplicates_of_labeled_texts_are_not_selected():
    assert rank(TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, known=["王明去年在 青川市工作"]) == [5, 1]


@pytest.mark.parametrize(
    "one, other, is_added",
    [
        ("一二三四五六", "一二三四五六", False),
        ("一二三四五六", "一二三 四五\n六", False),  # white space does not count
        ("一二三四五六", "一二三四五", False),  # 4 of 5 pairs
        ("一二三四五六", "一二三四五七", True),  # 4 of 6
        ("一", "一", False),
        ("一", "二", True),
        ("一", "一二", True),
    ],
)
def test_texts_are_near_duplicates_from_four_fifths_of_their_pairs(one, other, is_added):
    texts = DistinctTexts()
    assert texts.add(one) and texts.add(other) == is_added
    assert texts.add("完全不同的一句话")
