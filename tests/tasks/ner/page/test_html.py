"""The page of texts and entities: escaped, well-formed, and with the very text in it."""

import random
import re

import pytest

from tasks.ner.examples import entities_of
from tasks.ner.page import LANGUAGES
from tasks.ner.page.boxes import nested_pieces
from tasks.ner.page.colors import COLORS
from tasks.ner.page.html import WORDS
from tests.tasks.ner.page.parsing import Page, page, record


def drawn(parsed, number=0):
    """(start, end, type, probability, classes) of the marks of a text."""
    return [
        (start, end, a["data-type"], a["data-certainty"], a["class"].split()[1:])
        for start, end, a in parsed.marks[number]
    ]


def test_nested_entities_are_nested_marks_with_type_and_probability():
    text = "北京大学附属医院在北京"
    entities = [(0, 2, "b", 3.04), (0, 4, "a", 2.0), (0, 8, "a", 1.5), (2, 4, "c", 12.0), (9, 11, "b", 0.26)]
    parsed = Page(page(record(text, *entities)))
    assert parsed.texts == [text]
    assert drawn(parsed) == [
        (0, 8, "a", "0.68", []),
        (0, 4, "a", "0.73", []),
        (0, 2, "b", "0.82", []),
        (2, 4, "c", "1.00", []),
        (9, 11, "b", "0.53", []),
    ]
    assert [mark[2]["style"] for mark in parsed.marks[0]] == ["--h:2", "--h:1", "--h:0", "--h:0", "--h:0"]
    assert parsed.marks[0][2][2]["title"] == ("b: 北京\ncharacters 0 to 2 (exclusive)\nprobability 0.821")
    assert parsed.legend == ["a 2", "b 2", "c 1"]


def test_of_crossing_entities_the_later_is_drawn_in_pieces_that_go_on():
    parsed = Page(page(record("abcdefgh", (0, 4, "a", 1.0), (2, 6, "b", 2.0), (5, 8, "c", 3.0))))
    assert drawn(parsed) == [
        (0, 4, "a", "0.62", []),
        (2, 4, "b", "0.73", ["goes-on-right"]),
        (4, 6, "b", "0.73", ["goes-on-left"]),
        (5, 6, "c", "0.82", ["goes-on-right"]),
        (6, 8, "c", "0.82", ["goes-on-left"]),
    ]


def test_one_span_of_two_types_is_two_marks():
    parsed = Page(page(record("ab", (0, 2, "a", 1.0), (0, 2, "b", 2.0))))
    assert [mark[:3] for mark in drawn(parsed)] == [(0, 2, "a"), (0, 2, "b")]


HOSTILE = [
    "<script>alert(1)</script>",
    "</p></section></main></body>",
    "a & b &lt; &amp;#60; \"quoted\" 'single'",
    "<!-- --> <![CDATA[ ]]> </style><style>*{display:none}",
    "  leading, trailing \t and  double  ",
    "\nline\r\nbreaks\rof all kinds\n",
    "𠮷👨\u200d👩\u200d👧 e\u0301 \u202eright to left\u202c \u2028",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_types_and_title_are_escaped_and_the_text_is_the_input(text):
    kind = text
    content = page(
        record(text, (0, len(text), kind, 1.0), (1, 4, "a", 2.0), (2, 6, kind, 3.0)), types=["a", kind], name=text
    )
    parsed = Page(content)
    assert parsed.texts == [text]
    assert parsed.marks[0][0][2]["data-type"] == kind
    assert "script" not in parsed.tags and content.count("<style>") == 1 and "<!--" not in content
    assert "\r" not in content  # which a browser would turn into a line feed: it is written as a reference
    assert parsed.legend == ["a 1", f"{kind} 2"]


def test_control_characters_are_shown_by_their_symbols():
    parsed = Page(page(record("a\x00\x1b[31m\x7fb", (0, 2, "a", 1.0))))
    assert parsed.texts == ["a\u2400\u241b[31m\u2421b"]


def test_the_page_needs_nothing_else():
    content = page(record("ab", (0, 1, "a", 1.0)))
    assert content.startswith("<!DOCTYPE html>\n")
    assert not re.search(r"https?:|//|url\(|@import|src=|<link|<script", content)
    assert 'charset="utf-8"' in content


@pytest.mark.parametrize("score", [-1e4, 0.0, 1e4])
def test_scores_of_any_size_have_a_probability(score):
    parsed = Page(page(record("ab", (0, 1, "a", score))))
    assert f"probability {float(score > 0) if score else 0.5:.3f}" in parsed.marks[0][0][2]["title"]


def test_records_without_probabilities_have_those_of_the_scores():
    old = record("ab", (0, 1, "a", 2.0))
    del old["entities"][0]["probability"]
    assert drawn(Page(page(old)))[0][3] == "0.88"


def test_texts_without_entities_and_no_texts_make_a_page():
    assert Page(page(record("ab"), record(""))).texts == ["ab", ""]
    parsed = Page(page())
    assert (parsed.texts, parsed.legend) == ([], [])


def test_scores_of_a_model_without_temperatures_are_called_so():
    calibrated, scores = (page(record("ab", (0, 1, "a", 2.0)), calibrated=kind) for kind in (True, False))
    assert "probability 0.731" in Page(calibrated).marks[0][0][2]["title"] and "the probability" in calibrated
    assert Page(scores).marks[0][0][2]["title"].endswith("\nscore 0.731") and "The score is no probability" in scores


def test_words_are_those_of_the_language():
    content = page(record("北京", (0, 2, "a", 2.0)), record("上海"), language="zh")
    assert '<html lang="zh">' in content and "2 篇文本，1 个实体" in content
    assert "概率 0.731" in Page(content).marks[0][0][2]["title"]
    shown = re.sub(r"<style>.*?</style>|<[^>]*>", "", content.replace("file", ""), flags=re.DOTALL)
    assert set(re.findall("[a-z]+", shown)) == {"a"}


def test_each_language_has_all_words_with_the_same_places():
    def places(text):
        return sorted(set(re.findall(r"{\w*}", str(text))))

    assert set(WORDS) == set(LANGUAGES)
    english, chinese = (WORDS[language] for language in LANGUAGES)
    assert {name: places(text) for name, text in english.items()} == {n: places(t) for n, t in chinese.items()}


def test_nothing_of_a_text_becomes_an_attribute():
    content = page(
        record('x" onclick="alert(1)', (0, 20, '"><img onerror=alert(1)>', 1.0)), types=['"><img onerror=alert(1)>']
    )
    parsed = Page(content)
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    assert "img" not in parsed.tags
    policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
    assert ("meta", "content", policy) in parsed.attributes


def test_only_types_that_occur_are_in_the_legend_and_the_style():
    types = [f"type {number}" for number in range(1000)]
    content = page(record("abc", (0, 1, "type 999", 1.0), (1, 2, "type 3", 1.0)), types=types)
    assert Page(content).legend == ["type 3 1", "type 999 1"]
    assert len(content) < 12_000


@pytest.mark.parametrize("seed", range(30))
def test_random_entities_are_nested_and_their_pieces_make_them_up(seed):
    random_ = random.Random(seed)
    text = "".join(random_.choice("甲乙<&丙 ") for _ in range(40))
    spans = {(start, start + random_.randint(1, 15)) for start in (random_.randrange(25) for _ in range(15))}
    entities = [(start, end, random_.choice("abc"), random_.uniform(0, 9)) for start, end in spans]
    chosen = record(text, *entities)
    entities = entities_of(chosen)
    pieces = nested_pieces(entities)
    for number, piece in enumerate(pieces):
        assert piece.start < piece.end
        for other in pieces[number + 1 :]:
            assert other.start >= piece.end or other.end <= piece.end, "they cross"
    for entity in entities:
        parts = [piece for piece in pieces if piece.entity is entity]
        assert [part.start for part in parts] == [entity.start, *(part.end for part in parts[:-1])]
        assert parts[-1].end == entity.end
        assert [part.is_first for part in parts] == [True] + [False] * (len(parts) - 1)
        assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    parsed = Page(page(chosen))
    assert parsed.texts == [text]
    assert [mark[:2] for mark in drawn(parsed)] == [(piece.start, piece.end) for piece in pieces]


def test_a_long_text_with_many_entities_is_drawn():
    entities = [(10 * n, 10 * n + 4, "a", 1.0) for n in range(20_000)]
    parsed = Page(page(record("x" * 200_000, *entities)))
    assert len(parsed.marks[0]) == 20_000


def contrast(color, other):
    """Contrast of two colors (red, green, blue) by WCAG 2, from 1 to 21."""

    def luminance(color):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in color)]
        return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear))

    light, dark = sorted((luminance(color), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_names_on_colors_and_edges_on_both_backgrounds_can_be_read():
    white, black, dark = (255, 255, 255), (0, 0, 0), (0x16, 0x18, 0x1D)
    for color, ink in COLORS:
        color = tuple(map(int, color.split()))
        of_ink = {"#ffffff": contrast(color, white), "#000000": contrast(color, black)}
        assert of_ink[ink] == max(of_ink.values()) >= 4.5
        assert contrast(color, white) >= 2.9 and contrast(color, dark) >= 2.9
    assert contrast(black, white) == pytest.approx(21)
