"""The picture of the scores, looked at by what changes in it."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.ner.reports import score_image
from tasks.ner.reports.score_image import MAX_PANELS, chinese_font, draw_scores

TEXT = "北京大学生"


def scores(types=1, n=5):
    values = np.full([types, n, n], np.nan)
    rows, columns = np.triu_indices(n)
    values[:, rows, columns] = -20.0
    return values


def with_score(value, first, last, kind=0, types=1):
    values = scores(types)
    values[kind, first, last] = value
    return values


def draw(values, gold=(), types=None, text=TEXT, title="title"):
    return draw_scores(text, values, set(gold), types or [f"t{n}" for n in range(len(values))], title).astype(int)


def changed(image, other):
    """Rows and columns of the pixels that differ: (top, bottom, left, right)."""
    assert image.shape == other.shape
    rows, columns = np.nonzero((image != other).any(axis=2))
    return rows.min(), rows.max(), columns.min(), columns.max()


def centre(box):
    return (box[0] + box[1]) / 2, (box[2] + box[3]) / 2


def test_first_character_goes_down_and_last_character_to_the_right():
    plain = draw(scores())
    at = {cell: centre(changed(plain, draw(with_score(5.0, *cell)))) for cell in [(0, 0), (0, 3), (2, 3), (4, 4)]}
    assert at[0, 0][0] == pytest.approx(at[0, 3][0], abs=1) and at[0, 0][1] < at[0, 3][1]
    assert at[0, 3][1] == pytest.approx(at[2, 3][1], abs=1) and at[0, 3][0] < at[2, 3][0]
    assert at[2, 3][0] < at[4, 4][0] and at[2, 3][1] < at[4, 4][1]
    side = (at[0, 3][1] - at[0, 0][1]) / 3
    assert at[2, 3][0] - at[0, 3][0] == pytest.approx(2 * side, abs=1)


def color(value):
    """Color of a cell of this score."""
    image = draw(with_score(value, 1, 2))
    row, column = centre(changed(draw(with_score(-3.0 if value == -20 else -20.0, 1, 2)), image))
    return image[int(row), int(column)]


def test_scores_above_zero_are_red_below_blue_and_no_span_is_gray():
    red, _, blue = color(6.0)
    assert red > blue + 50
    red, _, blue = color(-20.0)
    assert blue > red + 50
    assert color(6.0).tolist() != color(1.0).tolist()
    assert color(500.0).tolist() == color(8.0).tolist()  # where the colors end
    assert color(np.nan).tolist() == [0xE8] * 3


def test_gold_entities_of_a_type_have_a_frame_in_its_panel():
    values = scores(types=2)
    plain = draw(values)
    box = changed(plain, draw(values, [(1, 3, "t1")]))
    cell = changed(plain, draw(with_score(5.0, 1, 2, kind=1, types=2)))
    assert centre(box) == pytest.approx(centre(cell), abs=1.5)
    assert box[0] <= cell[0] and cell[1] <= box[1]
    framed = draw(values, [(1, 3, "t1")])
    assert (framed[box[0] : box[1], box[2] : box[3]] < 60).all(axis=2).sum() > 20  # black
    other = changed(plain, draw(values, [(1, 3, "t0")]))
    assert other[3] < box[2]  # the panel to the left
    assert (draw(values, [(1, 99, "t1")]) == plain).all()  # past the part that is drawn


def test_of_many_types_those_of_gold_and_the_highest_are_drawn():
    values = scores(types=1000)
    values[500, 0, 1] = 7.0
    few = draw(scores(types=MAX_PANELS))
    image = draw(values, [(0, 2, "t900")])
    assert image.shape == few.shape
    values[900, 0, 0] = 3.0  # a gold type is drawn
    assert (draw(values, [(0, 2, "t900")]) != image).any()
    values[500, 0, 0] = 6.0  # so is the highest
    again = draw(values, [(0, 2, "t900")])
    values[999, 0, 0] = -19.0  # and the lowest is not, as the twelve are full
    values[999, 1:] = np.nan
    values[999, 0, 0] = -25.0
    assert (draw(values, [(0, 2, "t900")]) == again).all()


@pytest.mark.parametrize("text", ["$%^$", "$\\frac{$", "{}_^\\", "a\nb\x00", "👨\u200d👩\u202e"])
def test_text_types_and_title_may_hold_anything(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image = draw(scores(n=len(text)), [(0, 1, text)], [text], text, text)
    assert image.ndim == 3 and image.min() < image.max()


def test_text_of_one_character():
    assert draw(scores(n=1), text="甲").ndim == 3


@pytest.fixture
def fonts(monkeypatch):
    """Matplotlib's list of fonts has none with Chinese characters; ``fonts`` are the files that are installed."""
    installed = []
    monkeypatch.setattr(score_image.font_manager.fontManager, "ttflist", [])
    monkeypatch.setattr(score_image.font_manager, "findSystemFonts", lambda: installed)
    score_image.chinese_font.cache_clear()
    yield installed
    score_image.chinese_font.cache_clear()


def test_a_missing_font_is_said_once_in_a_line(fonts, capsys):
    assert [chinese_font(), chinese_font()] == [None, None]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: no font has Chinese characters") and "fonts-noto-cjk" in line


def test_a_font_that_matplotlib_has_not_listed_yet_is_found(fonts, monkeypatch, capsys):
    def add(path):
        if path == "broken.ttf":
            raise RuntimeError("no font")
        score_image.font_manager.fontManager.ttflist.append(SimpleNamespace(name="SimHei", fname=path))

    monkeypatch.setattr(score_image.font_manager.fontManager, "addfont", add)
    fonts += ["broken.ttf", "simhei.ttf"]
    assert chinese_font() == "SimHei" and capsys.readouterr().err == ""
