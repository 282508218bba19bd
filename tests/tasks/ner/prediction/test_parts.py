"""A text that is read part by part has the tokens, features, windows and entities of the whole."""

import random

import numpy as np
import pytest

from paddle_rope import CharTokenizer
from tasks.ner import NerPredictor
from tasks.ner.examples import TokenizedText
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.prediction.finding import find_in_windows
from tasks.ner.prediction.windows import CONTEXT_CHARACTERS, PART_CHARACTERS, part_bounds, read_parts, windows_of
from tests.tasks.ner.conftest import example
from tests.tasks.ner.features.plain_features import same

SENTENCES = (
    "北京大学和清华大学的学生昨天在中关村举行了比赛。",
    "“你好！”他说……\n\n　　第二天，叶老桂去了上海，",
    "NBA球员Jordan在2003年\r\n退役；",
    "一e\u0301👨\u200d👩\u200d👧！\ufe0f\n",
    "价格是3.5元?",
    "　\t \n ",
    "中华人民共和国国务院总理在人民大会堂会见了客人、记者",
)
RUNS = ["甲" * 5000, "a" * 5000, " " * 5000, "e\u0301" * 2500, "👨\u200d" * 2500]


def text_of(seed, characters=5000):
    return "".join(random.Random(seed).choices(SENTENCES, k=characters))[:characters]


@pytest.fixture(scope="module")
def features():
    texts = [text_of(seed, 2000) for seed in range(2)]
    labeled = {"北京大学": "a", "比赛。": "b", "，叶老桂": "a", "\n\n　　第二天": "b"}
    examples = [
        example(
            text, *((text.index(one), text.index(one) + len(one), kind) for one, kind in labeled.items() if one in text)
        )
        for text in texts
    ]
    return WordFeatures.from_examples(examples, FEATURE_KINDS, min_count=1)


def whole(text, tokenizer, features):
    ids, offsets, _ = tokenizer.encode(text)
    return TokenizedText(ids, offsets, [], features and features(text, offsets))


@pytest.mark.parametrize("characters", [80, 200, 1000])
@pytest.mark.parametrize("length, overlap", [(10, 3), (64, 16), (300, 280), (6000, 100)])
def test_tokens_features_and_windows_are_those_of_the_whole_text(features, characters, length, overlap):
    text = text_of(5)
    tokenizer = CharTokenizer.from_corpus([text_of(9)])
    together = whole(text, tokenizer, features)
    assert together.features.flags.any()
    parts = list(read_parts(text, tokenizer, features, characters))
    assert len(parts) >= len(text) / characters
    windows, expected = (windows_of(pieces, length, overlap) for pieces in (parts, [together]))
    for window, other in zip(windows, expected, strict=True):
        assert (window.bounds, window.text[:2]) == (other.bounds, other.text[:2])
        assert same(window.text.features, other.text.features)


@pytest.mark.parametrize("text", ["", "甲", text_of(1), *RUNS])
@pytest.mark.parametrize("characters", [64, 1000])
def test_parts_cover_the_text_and_are_of_a_bounded_size(text, characters):
    bounds = list(part_bounds(text, characters))
    assert bounds[0][0] == 0 and bounds[-1][1] == len(text)
    assert [start for start, _ in bounds[1:]] == [end for _, end in bounds[:-1]]
    assert all(characters / 2 <= end - start <= characters for start, end in bounds[:-1])


@pytest.mark.parametrize(
    "text, end",
    [
        ("甲。乙丙。丁\n 戊。己庚辛", 8),  # a line with the spaces that the next one begins with
        ("甲乙丙丁戊。”己，庚辛壬癸子", 7),
        ("甲乙丙丁戊己，庚辛壬癸子丑", 7),
        ("甲乙丙丁戊己庚辛壬癸子丑寅", 10),
        ("甲乙丙丁戊己abcdefghi", 6),
        ("甲乙丙丁戊己庚！\ufe0f辛壬癸子", 9),  # a mark stays with its character
    ],
)
def test_a_text_is_cut_at_the_best_place(text, end):
    assert next(part_bounds(text, 10)) == (0, end)


def test_a_run_of_words_without_a_place_to_cut_differs_near_the_cuts_at_most(features):
    text = "".join(character for character in text_of(3, 20_000) if "\u4e00" <= character <= "\u9fd5")
    tokenizer = CharTokenizer.from_corpus([text])
    together = whole(text, tokenizer, features)
    parts = list(read_parts(text, tokenizer, features, 500))
    cuts = [part.offsets[1][0] for part in parts[1:]]
    assert len(cuts) > 10 and sum((part.ids[1:-1] for part in parts), []) == together.ids[1:-1]
    columns = np.concatenate([part.features.columns[1:-1] for part in parts])
    for place in (columns != together.features.columns[1:-1]).any(axis=1).nonzero()[0]:
        assert min(abs(place - cut) for cut in cuts) < CONTEXT_CHARACTERS


@pytest.mark.slow
def test_entities_of_a_document_are_those_of_its_whole_text(trained, dev_texts):
    predictor = NerPredictor(trained.model, "cpu", max_tokens=64)
    document = "\n".join(dev_texts * 20)
    assert len(document) > 1.5 * PART_CHARACTERS
    (found,) = predictor.find([document])
    predictor.model.config.window_tokens = 64
    (expected,) = find_in_windows(predictor.model, [predictor.tokenize(document)], 32)
    assert len(found) > 500 and [entity[:3] for entity in found] == [entity[:3] for entity in expected]
    assert [entity.score for entity in found] == pytest.approx([entity.score for entity in expected], abs=1e-3)
