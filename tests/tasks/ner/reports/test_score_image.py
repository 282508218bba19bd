"""The picture of the scores, looked at by what changes in it."""

import warnings

import numpy as np
import pytest

from tasks.ner.reports.monitoring import MAX_PANELS, draw_scores

TEXT = "北京大学生"


def scores(types=1, n=5, **others):
    """All spans score -20 but for ``type_first_last=score``."""
    values = np.full([types, n, n], np.nan)
    rows, columns = np.triu_indices(n)
    values[:, rows, columns] = -20.0
    for place, score in others.items():
        values[tuple(map(int, place.strip("_").split("_")))] = score
    return values


def draw(values, gold=(), types=None, text=TEXT, title="title"):
    return draw_scores(text, values, set(gold), types or [f"t{n}" for n in range(len(values))], title).astype(int)


def changed(image, other):
    """Rows and columns of the pixels that differ: (top, bottom, left, right)."""
    assert image.shape == other.shape
    rows, columns = np.nonzero((image != other).any(axis=2))
    return rows.min(), rows.max(), columns.min(), columns.max()


def centre(box):
    return np.array([box[0] + box[1], box[2] + box[3]]) / 2


def test_first_character_goes_down_last_to_the_right_and_scores_above_zero_are_red():
    plain = draw(scores())
    cells = [(0, 0), (0, 3), (4, 4)]
    first, right, last = (centre(changed(plain, draw(scores(**{f"_0_{a}_{b}": 5.0})))) for a, b in cells)
    side = (right[1] - first[1]) / 3
    assert side > 5
    assert right - first == pytest.approx([0, 3 * side], abs=1) and last - first == pytest.approx([4 * side] * 2, abs=2)
    row, column = first.astype(int)
    red, blue, gray = (draw(scores(_0_0_0=value))[row, column] for value in (6.0, -20.0, np.nan))
    assert red[0] > red[2] + 50 and blue[2] > blue[0] + 50 and len(set(gray)) == 1


def test_gold_entities_have_a_frame_in_the_panel_of_their_type_and_of_many_types_theirs_are_drawn():
    plain, framed = draw(scores(types=2)), draw(scores(types=2), [(1, 3, "t1")])
    box, cell = changed(plain, framed), changed(plain, draw(scores(types=2, _1_1_2=5.0)))
    assert centre(box) == pytest.approx(centre(cell), abs=1.5) and box[0] <= cell[0] and cell[1] <= box[1]
    assert changed(plain, draw(scores(types=2), [(1, 3, "t0")]))[3] < box[2]  # the panel to the left
    assert (draw(scores(types=2), [(1, 99, "t1")]) == plain).all()  # past the part that is drawn
    gold = [(0, 2, "t900")]
    image = draw(scores(1000, _500_0_1=7.0), gold)
    assert image.shape == draw(scores(MAX_PANELS)).shape
    assert (draw(scores(1000, _500_0_1=7.0, _900_0_0=3.0), gold) != image).any()
    assert (draw(scores(1000, _500_0_1=7.0, _999_0_0=-25.0), gold) == image).all()


@pytest.mark.parametrize("text", ["$%^$", "$\\frac{$", "{}_^\\", "a\nb\x00", "👨\u200d👩\u202e", "甲"])
def test_text_types_and_title_may_hold_anything(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = draw(scores(n=len(text)), [(0, 1, text)], [text], text, text)
    assert image.ndim == 3 and image.min() < image.max()


def test_chinese_characters_are_drawn_each_in_its_own_way():
    images = [draw(scores(n=1), text=text) for text in ("甲", "乙", "甲")]
    assert (images[0] == images[2]).all() and (images[0] != images[1]).any()
