"""A text that is read part by part has the tokens, features, windows and entities of the whole."""

import random
import tracemalloc

import numpy as np
import pytest

from paddle_rope import CharTokenizer
from tasks.ner.batching import TokenizedText
from tasks.ner.examples import Entity, make_example
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.prediction import finding
from tasks.ner.prediction import parts as parts_of_texts
from tasks.ner.prediction import predictor as predicting
from tasks.ner.prediction.parts import CONTEXT_CHARACTERS, part_bounds, read_parts
from tasks.ner.prediction.windows import cut_text, windows_of

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
    random_ = random.Random(seed)
    text = ""
    while len(text) < characters:
        text += random_.choice(SENTENCES)
    return text[:characters]


@pytest.fixture(scope="module")
def features():
    texts = [text_of(seed, 2000) for seed in range(2)]
    labeled = [("北京大学", "a"), ("比赛。", "b"), ("，叶老桂", "a"), ("\n\n　　第二天", "b")]
    examples = []
    for text in texts:
        found = [
            Entity(text.index(surface), text.index(surface) + len(surface), kind)
            for surface, kind in labeled
            if surface in text
        ]
        examples.append(make_example(text, found, "x:1"))
    return WordFeatures.from_examples(examples, FEATURE_KINDS, min_count=1)


def whole(text, tokenizer, features):
    ids, offsets, _ = tokenizer.encode(text)
    return TokenizedText(ids, offsets, [], features and features(text, offsets))


def joined(parts):
    """One tokenized text of its parts."""
    parts = list(parts)
    ids = [parts[0].ids[0], *(token for part in parts for token in part.ids[1:-1]), parts[0].ids[-1]]
    offsets = [(0, 0), *(pair for part in parts for pair in part.offsets[1:-1]), (0, 0)]
    inner = [part.features.of_tokens(slice(1, -1)) for part in parts]
    return ids, offsets, np.concatenate([f.columns for f in inner]), np.concatenate([f.flags for f in inner])


@pytest.mark.parametrize("characters", [80, 200, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_tokens_and_features_are_those_of_the_whole_text(features, seed, characters):
    text = text_of(seed)
    tokenizer = CharTokenizer.from_corpus([text_of(9)])
    together = whole(text, tokenizer, features)
    parts = list(read_parts(text, tokenizer, features, characters))
    ids, offsets, columns, flags = joined(parts)
    assert len(parts) >= len(text) / characters
    assert (ids, offsets) == (together.ids, together.offsets)
    assert (columns == together.features.columns[1:-1]).all()
    assert (flags == together.features.flags[1:-1]).all() and flags.any()


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
    ids, offsets, columns, _ = joined(parts)
    assert (ids, offsets) == (together.ids, together.offsets) and len(parts) > 10
    cuts = [part.offsets[1][0] for part in parts[1:]]
    for place in (columns != together.features.columns[1:-1]).any(axis=1).nonzero()[0]:
        assert min(abs(place - cut) for cut in cuts) < CONTEXT_CHARACTERS


def test_without_features():
    tokenizer = CharTokenizer.from_corpus([text_of(0)])
    parts = list(read_parts(text_of(0), tokenizer, None, 300))
    assert len(parts) > 10 and all(part.features is None for part in parts)


@pytest.mark.parametrize("length, overlap", [(10, 3), (64, 16), (300, 298), (6000, 100)])
@pytest.mark.parametrize("characters", [70, 1000, 9000])
def test_windows_of_parts_are_those_of_the_whole(features, characters, length, overlap):
    text = text_of(5)
    tokenizer = CharTokenizer.from_corpus([text])
    expected = cut_text(whole(text, tokenizer, features), length, overlap)
    windows = list(windows_of(read_parts(text, tokenizer, features, characters), length, overlap))
    assert len(windows) == len(expected)
    for window, other in zip(windows, expected):
        assert window.bounds == other.bounds
        assert (window.text.ids, window.text.offsets) == (other.text.ids, other.text.offsets)
        assert (window.text.features.columns == other.text.features.columns).all()
        assert (window.text.features.flags == other.text.features.flags).all()


def test_windows_are_made_as_the_parts_come():
    read = []

    def parts():
        for start in range(0, 1000, 100):
            read.append(start)
            offsets = [(0, 0), *((i, i + 1) for i in range(start, start + 100)), (0, 0)]
            yield TokenizedText([2, *range(start, start + 100), 3], offsets, [])

    windows = windows_of(parts(), 50, 10)
    assert next(windows).text.ids == [2, *range(50), 3]
    assert read == [0]


@pytest.fixture(scope="module")
def predictor(trained):
    return predicting.NerPredictor(trained.model, "cpu", max_tokens=64)


@pytest.fixture(scope="module")
def document(corpus):
    text = ""
    for number in range(100):
        text += corpus.dev_records[number % len(corpus.dev_records)]["text"] + "\n" * (number % 3)
    return text[:5000]


def test_entities_of_a_text_in_parts_are_those_of_the_whole(predictor, document, monkeypatch):
    (expected,) = predictor.find([document])
    monkeypatch.setattr(parts_of_texts, "PART_CHARACTERS", 300)
    monkeypatch.setattr(finding, "TOKENS_AT_ONCE", 500)
    (found,) = predictor.find([document])
    assert len(found) > 50
    assert [entity[:3] for entity in found] == [entity[:3] for entity in expected]
    assert [entity.score for entity in found] == pytest.approx([entity.score for entity in expected], abs=1e-3)


def test_texts_of_all_lengths_keep_their_entities_when_few_windows_are_held(predictor, document, monkeypatch):
    texts = ["", document[:1000], document[:20], "", document[1000:3000], document[:30], document[2000:2100]]
    expected = [[entity[:3] for entity in of_text] for of_text in predictor.find(texts)]
    monkeypatch.setattr(finding, "TOKENS_AT_ONCE", 100)
    assert [[entity[:3] for entity in of_text] for of_text in predictor.find(texts)] == expected


def test_progress_counts_the_characters_of_one_document(predictor, document, monkeypatch):
    counted = []
    bar = predicting.tqdm

    class Bar(bar):
        def update(self, count):
            counted.append(count)
            return super().update(count)

    monkeypatch.setattr(predicting, "tqdm", Bar)
    monkeypatch.setattr(predictor, "batch_size", 2)
    monkeypatch.setattr(predictor, "show_progress", True)
    predictor.find([document, "", document[:100]])
    assert sum(counted) == len(document) + 100
    assert len(counted) > 10 and min(counted) >= 0


class NothingFound:
    """A model that finds nothing in no time."""

    def __init__(self, config):
        self.config = config

    def scores_of_text(self, length):
        return length

    def find_spans(self, batch, thresholds=None):
        return [[] for _ in batch["input_ids"]]


def test_memory_does_not_grow_with_the_text(predictor, document, monkeypatch):
    monkeypatch.setattr(predictor, "model", NothingFound(predictor.model.config))
    monkeypatch.setattr(finding, "TOKENS_AT_ONCE", 1000)
    monkeypatch.setattr(parts_of_texts, "PART_CHARACTERS", 500)

    def peak(text):
        tracemalloc.start()
        try:
            assert predictor.find([text]) == [[]]
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    texts = [document, document * 4]
    predictor.find(texts[:1])  # what is made once
    short, long = map(peak, texts)
    assert long - short < 40 * (len(texts[1]) - len(texts[0]))  # the bounds of windows; tokens alone take 100 and more
