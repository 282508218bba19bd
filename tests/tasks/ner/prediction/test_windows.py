"""Long texts: windows, which window decides, and parts that give the tokens, features and entities of the whole."""

import random
import re
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope import CharTokenizer
from paddle_rope.tasks.ner.arguments import NerConfig
from paddle_rope.tasks.ner.examples import Entity, TokenizedText
from paddle_rope.tasks.ner.features import FEATURE_KINDS, WordFeatures
from paddle_rope.tasks.ner.prediction import finding
from paddle_rope.tasks.ner.prediction.finding import (
    TOKENS_AT_ONCE,
    entities_of_texts,
    find_in_windows,
    merge_windows,
    part_bounds,
    predict_entities,
    read_parts,
    windows_of,
)
from tests.tasks.ner.conftest import example, tokenized
from tests.tasks.ner.features.plain_features import same

examples = settings(max_examples=80)
SIZES = st.integers(2, 24).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length - 2)))


def windows(tokens, length, overlap, size=1):
    return list(windows_of([tokenized(range(10, 10 + tokens), size=size)], length, overlap))


def merged(windows, found):
    return merge_windows([window.bounds for window in windows], [[Entity(*one) for one in part] for part in found])


@pytest.mark.equation("6.22")
@examples
@given(st.integers(0, 100), SIZES)
def test_windows_cover_the_text_and_neighbors_share_more_than_the_overlap(tokens, sizes):
    length, overlap = sizes
    cut = windows(tokens, length, overlap, size=2)
    numbers = [[token - 10 for token in window.text.ids[1:-1]] for window in cut]
    assert (len(cut) == 1) == (tokens <= length)
    assert sorted({number for part in numbers for number in part}) == list(range(tokens))
    assert (cut[0].bounds[0], cut[-1].bounds[1]) == (-inf, inf)
    assert sum(window.characters for window in cut) == 2 * tokens
    for window, part in zip(cut, numbers):
        assert window.text.ids[0] == 2 and window.text.ids[-1] == 3 and len(part) <= length
        assert window.text.offsets == [(0, 0), *((2 * i, 2 * i + 2) for i in part), (0, 0)]
        start, end = window.bounds
        assert start in (-inf, 2 * part[0] if part else -inf) and end in (inf, window.text.offsets[-2][1])
    for part, following in zip(numbers, numbers[1:]):
        assert len(part) == len(following) == length and len(set(part) & set(following)) > overlap


@pytest.mark.equation("6.22")
@examples
@given(st.integers(1, 64), SIZES, st.data())
def test_a_short_entity_is_decided_by_the_window_with_the_most_text_around(tokens, sizes, data):
    length, overlap = sizes
    start = data.draw(st.integers(0, tokens - 1))
    end = data.draw(st.integers(start + 1, min(tokens, start + overlap + 3)))
    cut = windows(tokens, length, overlap)
    # a detector that calls what it sees of an entity an entity
    seen = [(max(start, begins), min(end, ends)) for begins, ends in (window.bounds for window in cut)]
    found = [[(*span, "a", number)] if span[0] < span[1] else [] for number, span in enumerate(seen)]
    around = [min(start - begins, ends - end) for begins, ends in (window.bounds for window in cut)]
    if end - start <= overlap:
        assert merged(cut, found) == [(start, end, "a", int(np.argmax(around)), None)] and max(around) > 0
    assert all(entity[:2] == (start, end) for entity in merged(cut, found))


def pairs(characters):
    """(start, end) of all pairs of brackets, in the order of their ends."""
    opened, found = [], []
    for index, character in enumerate(characters):
        if character == ord("("):
            opened.append(index)
        elif character == ord(")") and opened:
            found.append((opened.pop(), index + 1))
    return found


def bracketed(text):
    return tokenized(map(ord, text))


class Brackets:
    """A model that finds what is between brackets, wherever it sees both; a token is a character."""

    def __init__(self, **lengths):
        self.config = NerConfig(vocab_size=2, types=["round"], **lengths)

    def find_spans(self, batch, thresholds=None):
        return [[(start, end, 0, 1.0) for start, end in pairs(row)] for row in batch["input_ids"].tolist()]


def test_of_windows_with_the_same_text_around_the_first_decides():
    assert merge_windows([(-inf, 10), (4, inf)], [[Entity(6, 8, "a", 0)], [Entity(6, 8, "a", 1)]])[0].score == 0


@pytest.mark.equation("6.23")
@examples
@given(st.lists(st.text("(()a", max_size=120), min_size=1, max_size=5), SIZES)
def test_no_entity_up_to_the_overlap_is_lost_or_found_twice_in_texts_of_any_length(texts, sizes):
    cut = (window for text in texts for window in windows_of([bracketed(text)], *sizes))
    for text, entities in zip(texts, entities_of_texts(Brackets(), cut, batch_size=3), strict=True):
        found, every = [entity[:2] for entity in entities], pairs(map(ord, text))
        assert len(set(found)) == len(found) and set(found) <= set(every)
        assert {span for span in every if span[1] - span[0] <= sizes[1]} <= set(found)


@pytest.mark.parametrize("longest_entity, bound", [(20, 40), (3, 32), (None, 99)])
def test_no_entity_is_longer_than_the_bound(longest_entity, bound):
    model, sizes = Brackets(max_characters=200, longest_entity=longest_entity), (2, 7, 8, 32, 33, 40, 41)
    text = bracketed("".join(f"({'a' * (size - 2)})" for size in sizes))
    (found,) = find_in_windows(model, [text], 1)
    assert [end - start for start, end, *_ in found] == [size for size in sizes if size <= bound]


@pytest.mark.parametrize("max_span_length, shapes", [(None, [(1, 20), (2, 10), (1, 5)]), (3, [(3, 20), (1, 5)])])
def test_a_batch_has_no_more_scores_than_the_bound(monkeypatch, max_span_length, shapes):
    monkeypatch.setattr(finding, "MAX_BATCH_SCORES", 250)  # one text of 20 tokens has 400, or in a band 60
    model, sizes, seen = Brackets(max_span_length=max_span_length), (3, 18, 3, 8), []
    find = model.find_spans
    model.find_spans = lambda batch, *given: seen.append(batch["input_ids"].shape) or find(batch, *given)
    found = predict_entities(model, [bracketed(f"({'a' * (size - 2)})") for size in sizes], batch_size=3)
    assert [of_text[0][:2] for of_text in found] == [(0, size) for size in sizes] and seen == shapes


def test_an_entity_reaches_from_its_first_token_to_the_end_of_its_last():
    text = TokenizedText([0, *map(ord, "(a))"), 0], [(0, 0), (0, 2), (3, 6), (8, 9), (9, 11), (0, 0)], [])
    ((entity,),) = find_in_windows(Brackets(max_characters=9), [text], 1)
    assert entity[:2] == (0, 9)


def test_a_document_is_read_as_it_is_computed():
    taken, progress = [], []

    def parts():
        for start in range(0, 2 * TOKENS_AT_ONCE, 1024):
            taken.append(1024)
            offsets = [(0, 0), *((i, i + 1) for i in range(start, start + 1024)), (0, 0)]
            yield TokenizedText([0, *map(ord, "(aa)" * 256), 0], offsets, [])

    cut = windows_of(parts(), 100, 10)
    next(cut)
    assert sum(taken) == 1024
    short = windows_of([bracketed("(a)")], 100, 10)
    results = entities_of_texts(Brackets(), (w for text in (short, windows_of(parts(), 100, 10)) for w in text), 64,
                                progress=progress.append)  # fmt: skip
    assert len(next(results)) == 1
    assert sum(taken) < 1.5 * TOKENS_AT_ONCE
    assert len(next(results)) == 2 * TOKENS_AT_ONCE / 4
    assert len(progress) > 10 and sum(progress) == 3 + 2 * TOKENS_AT_ONCE


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


HINTED = [(4000, 4999, "b"), (150, 700, "a"), (0, 2, "b"), (165, 170, "b")]


@pytest.mark.parametrize("characters, length, overlap", [
    (80, 10, 3), (200, 64, 16), (80, 300, 280), (1000, 300, 280), (200, 6000, 100),
])  # fmt: skip
def test_tokens_features_and_windows_are_those_of_the_whole_text(characters, length, overlap):
    labeled = {"北京大学": "a", "比赛。": "b", "，叶老桂": "a", "“你好！”他说……\n\n　　第二天，叶老桂": "b"}
    text, trained_on, tokenizer = text_of(5), text_of(0, 2000), CharTokenizer.from_corpus([text_of(9)])
    entities = [(at := trained_on.index(one), at + len(one), kind) for one, kind in labeled.items()]
    features = WordFeatures.from_examples([example(trained_on, *entities)], FEATURE_KINDS, min_count=1)
    ids, offsets, _ = tokenizer.encode(text)
    together = TokenizedText(ids, offsets, [], features(text, offsets, hinted=HINTED))
    assert together.features.flags.any()
    parts = list(read_parts(text, tokenizer, features, characters, HINTED))
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


@pytest.mark.parametrize("text, end", [
    ("甲。乙丙。丁\n 戊。己庚辛", 8),  # a line with the spaces that the next one begins with
    ("甲乙丙丁戊。”己，庚辛壬癸子", 7),
    ("甲乙丙丁戊己，庚辛壬癸子丑", 7),
    ("甲乙丙丁戊己庚辛壬癸子丑寅", 10),
    ("甲乙丙丁戊己abcdefghi", 6),
    ("甲乙丙丁戊己庚！\ufe0f辛壬癸子", 9),  # a mark stays with its character
    ("甲乙丙丁戊己庚辛壬癸\u0301子", 9),
])  # fmt: skip
def test_a_text_is_cut_at_the_best_place(text, end):
    assert next(part_bounds(text, 10)) == (0, end)


def test_entities_of_a_document_are_those_of_its_whole_text(predictor, dev_texts, monkeypatch):
    monkeypatch.setattr(finding, "PART_CHARACTERS", 200)
    document = "\n".join(dev_texts)
    (found,) = predictor.find([document])
    (expected,) = find_in_windows(predictor.model, [predictor.tokenize(document)], 32)
    assert len(found) > 20 and [entity[:3] for entity in found] == [entity[:3] for entity in expected]
    assert [entity.score for entity in found] == pytest.approx([entity.score for entity in expected], abs=1e-3)


def test_places_to_cut_are_found_by_python_3_10_too():  # which has no possessive quantifiers
    assert not [cut.pattern for cut in finding._CUTS if re.search(r"[*+?}]\+", cut.pattern)]
