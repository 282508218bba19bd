"""Texts in windows and back: what is cut where, and which window decides."""

import numpy as np
import pytest

from tasks.ner.batching import TokenizedText
from tasks.ner.examples import Entity
from tasks.ner.prediction import windows as windows_of_texts
from tasks.ner.prediction.windows import cut_text


def merge_windows(windows, found):
    bounds = [window.bounds for window in windows]
    merged = windows_of_texts.merge_windows(bounds, [[Entity(*entity) for entity in part] for part in found])
    return [entity[:4] for entity in merged]


def text_of(tokens, size=1):
    """``tokens`` tokens of ``size`` characters each, with ids 10, 11, ..."""
    offsets = [(0, 0), *((size * i, size * (i + 1)) for i in range(tokens)), (0, 0)]
    return TokenizedText([2, *range(10, 10 + tokens), 3], offsets, [])


@pytest.mark.equation("6.22")
@pytest.mark.parametrize("length, overlap", [(2, 0), (5, 0), (5, 3), (16, 4), (16, 14)])
@pytest.mark.parametrize("tokens", [0, 1, 2, 5, 6, 15, 16, 17, 33, 100])
def test_windows_cover_the_text_and_neighbors_share_more_than_the_overlap(tokens, length, overlap):
    text = text_of(tokens, size=2)
    windows = cut_text(text, length, overlap)
    assert (len(windows) == 1) == (tokens <= length)
    for window in windows:
        assert window.text.ids[0] == 2 and window.text.ids[-1] == 3 and len(window.text.ids) <= length + 2
        numbers = [index - 10 for index in window.text.ids[1:-1]]
        assert window.text.offsets == [(0, 0), *((2 * i, 2 * i + 2) for i in numbers), (0, 0)]
    parts = [window.text.ids[1:-1] for window in windows]
    assert sorted({index for part in parts for index in part}) == text.ids[1:-1]
    for part, following in zip(parts, parts[1:]):
        assert len(part) == len(following) == length and following[0] > part[0]
        assert len(set(part) & set(following)) > overlap


@pytest.mark.equation("6.22")
def test_only_cuts_bound_a_window():
    windows = cut_text(text_of(10), 6, 2)
    assert [(window.start, window.end) for window in windows] == [(-np.inf, 6), (3, 9), (4, np.inf)]


@pytest.mark.equation("6.22")
@pytest.mark.parametrize("length, overlap", [(6, 4), (9, 3), (16, 4), (16, 14), (30, 10)])
@pytest.mark.parametrize("tokens", [7, 17, 31, 64])
def test_every_short_span_is_decided_by_one_window_which_holds_it_with_text_around(tokens, length, overlap):
    windows = cut_text(text_of(tokens), length, overlap)
    for start in range(tokens):
        for end in range(start + 1, min(tokens, start + overlap) + 1):
            holding = [w.start <= start and end <= w.end for w in windows]
            found = [[(start, end, "a", float(n))] if holds else [] for n, holds in enumerate(holding)]
            ((*_, number),) = merge_windows(windows, found)
            window = windows[int(number)]
            assert window.start < start and end < window.end
            others = [min(start - w.start, w.end - end) for w, holds in zip(windows, holding) if holds]
            assert min(start - window.start, window.end - end) == max(others)


@pytest.mark.equation("6.23")
def test_the_window_with_the_most_text_around_decides_alone():
    windows = cut_text(text_of(20), 10, 5)  # 0-10, 4-14, 8-18, 10-20
    span = (6, 9, "a")
    # 1 character on the right in the first, 2 on the left in the second
    assert merge_windows(windows, [[(*span, 0.5)], [(*span, 0.25)], [], []]) == [(*span, 0.25)]
    assert merge_windows(windows, [[(*span, 0.5)], [], [], []]) == []
    assert merge_windows(windows, [[], [(*span, 0.25)], [], []]) == [(*span, 0.25)]


@pytest.mark.equation("6.23")
def test_what_touches_a_cut_is_dropped_and_what_touches_the_end_of_the_text_is_not():
    windows = cut_text(text_of(20), 10, 5)
    fragments = [(7, 10, "a", 1.0)], [(4, 8, "a", 1.0), (9, 14, "a", 1.0)], [(8, 18, "a", 1.0)], [(10, 13, "a", 1.0)]
    assert merge_windows(windows, fragments) == []
    whole = [[(0, 3, "a", 1.0)], [], [], [(15, 20, "b", 2.0)]]
    assert merge_windows(windows, whole) == [(0, 3, "a", 1.0), (15, 20, "b", 2.0)]


@pytest.mark.equation("6.23")
def test_pieces_of_an_entity_at_a_cut_never_come_with_it():
    # a detector that calls what it sees of an entity an entity
    length, overlap = 12, 5
    for start in range(40):
        for size in range(1, overlap + 1):
            entity = (start, start + size)
            windows = cut_text(text_of(45), length, overlap)
            found = []
            for window in windows:
                seen = max(entity[0], window.start), min(entity[1], window.end)
                found.append([(int(seen[0]), int(seen[1]), "a", 1.0)] if seen[0] < seen[1] else [])
            assert [span[:2] for span in merge_windows(windows, found)] == [entity]


def test_entities_of_all_windows_come_in_order():
    windows = cut_text(text_of(20), 10, 5)
    found = [[(1, 3, "b", 1.0), (1, 2, "a", 1.0)], [(7, 9, "b", 1.0), (7, 9, "a", 2.0)], [], []]
    assert [span[:3] for span in merge_windows(windows, found)] == [(1, 2, "a"), (1, 3, "b"), (7, 9, "a"), (7, 9, "b")]
