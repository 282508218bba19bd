"""The page of texts and entities: escaped, well-formed, and with the very text in it."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ner.examples import Entity
from tasks.ner.page import LANGUAGES
from tasks.ner.page.boxes import nested_pieces
from tasks.ner.page.html import WORDS
from tests.tasks.ner.page.parsing import Page, page, parsed, record

NEST = [(0, 2, "b", 3.04), (0, 4, "a", 2.0), (0, 8, "a", 1.5), (2, 4, "c", 12.0), (9, 11, "b", 0.26)]


@pytest.mark.parametrize(
    "entities, expected",
    [
        (NEST, ["0-8 a 0.68 h2", "0-4 a 0.73 h1", "0-2 b 0.82 h0", "2-4 c 1.00 h0", "9-11 b 0.53 h0"]),
        ([(0, 2, "a", 1.0), (0, 2, "b", 2.0)], ["0-2 a 0.62 h1", "0-2 b 0.73 h0"]),
        # of crossing entities the later is drawn in pieces that go on
        (
            [(0, 4, "a", 1.0), (2, 6, "b", 2.0), (5, 8, "c", 3.0)],
            [
                *("0-4 a 0.62 h1", "2-4 b 0.73 h0 goes-on-right", "4-6 b 0.73 h1 goes-on-left"),
                *("5-6 c 0.82 h0 goes-on-right", "6-8 c 0.82 h0 goes-on-left"),
            ],
        ),
        ([(0, 2, "a", -1e4), (2, 4, "b", 0.0), (4, 6, "c", 1e4)], ["0-2 a 0.00 h0", "2-4 b 0.50 h0", "4-6 c 1.00 h0"]),
    ],
)
def test_entities_are_nested_marks_with_type_and_probability(entities, expected):
    text = "北京大学附属医院在北京"
    read = parsed(record(text, *entities))
    drawn = []
    for start, end, a in read.marks[0]:
        more = " ".join(["", *a["class"].split()[1:]])
        drawn.append(f"{start}-{end} {a['data-type']} {a['data-certainty']} {a['style'].replace('--h:', 'h')}{more}")
    assert drawn == expected and read.texts == [text]
    title = read.marks[0][0][2]["title"]
    assert text[: entities[0][1]] in title and f"to {expected[0].split()[0].split('-')[1]} " in title


HOSTILE = [
    "<script>alert(1)</script>",
    "</p></section></main></body>",
    "a & b &lt; &amp;#60; \"quoted\" 'single'",
    'x" onclick="alert(1)"><img onerror=alert(1)>',
    "<!-- --> <![CDATA[ ]]> </style><style>*{display:none}",
    "  leading, trailing \t and  double  ",
    "\nline\r\nbreaks\rof all kinds\n",
    "𠮷👨\u200d👩\u200d👧 e\u0301 \u202eright to left\u202c \u2028",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_types_and_title_are_escaped_and_the_text_is_the_input(text):
    entities = [(0, len(text), text, 1.0), (1, 4, "a", 2.0), (2, 6, text, 3.0)]
    content = page(record(text, *entities), types=["a", text], name=text)
    read = Page(content)
    assert read.texts == [text] and read.marks[0][0][2]["data-type"] == text
    assert not {"script", "img"} & read.tags and content.count("<style>") == 1 and "<!--" not in content
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert "\r" not in content  # which a browser would turn into a line feed: it is written as a reference
    assert read.legend == ["a 1", f"{text} 2"]


def test_control_characters_are_shown_by_their_symbols():
    assert parsed(record("a\x00\x1b[31m\x7fb", (0, 2, "a", 1.0))).texts == ["a\u2400\u241b[31m\u2421b"]


def test_the_page_needs_nothing_else_and_may_load_nothing():
    content = page(record("ab", (0, 1, "a", 1.0)))
    assert content.startswith("<!DOCTYPE html>\n") and 'charset="utf-8"' in content
    assert not re.search(r"https?:|//|url\(|@import|src=|<link|<script", content)
    policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
    assert f'content="{policy}"' in content


def test_records_without_probabilities_have_those_of_the_scores():
    old = record("ab", (0, 1, "a", 2.0))
    del old["entities"][0]["probability"]
    assert parsed(old).marks[0][0][2]["data-certainty"] == "0.88"


def test_texts_without_entities_and_no_texts_make_a_page():
    assert parsed(record("ab"), record("")).texts == ["ab", ""]
    assert (parsed().texts, parsed().legend) == ([], [])


@pytest.mark.parametrize("language, probability, score", [("en", "probability", "score"), ("zh", "概率", "得分")])
def test_probabilities_without_temperatures_are_called_scores(language, probability, score):
    records = record("北京", (0, 2, "a", 2.0)), record("上海")
    for calibrated, word in ((True, probability), (False, score)):
        read = parsed(*records, calibrated=calibrated, language=language)
        assert read.marks[0][0][2]["title"].endswith(f"{word} 0.731") and ("html", "lang", language) in read.attributes
    assert WORDS[language]["score of a box"] in page(*records, calibrated=False, language=language)


def test_each_language_has_all_words_with_the_same_places():
    def places(text):
        return sorted(set(re.findall(r"{\w*}", str(text))))

    assert set(WORDS) == set(LANGUAGES)
    english, chinese = (WORDS[language] for language in LANGUAGES)
    assert {name: places(text) for name, text in english.items()} == {n: places(t) for n, t in chinese.items()}
    content = re.sub(r"<style>.*?</style>|<[^>]*>", "", page(record("北京"), name="", language="zh"), flags=re.DOTALL)
    assert not re.search("[a-z]", content)


def test_only_types_that_occur_are_in_the_legend_and_the_style():
    types = [f"type {number}" for number in range(1000)]
    content = page(record("abc", (0, 1, "type 999", 1.0), (1, 2, "type 3", 1.0)), types=types)
    assert len(content) < 12_000 and content.count('type="checkbox"') == 2


@settings(derandomize=True, max_examples=30, deadline=None)
@given(
    st.text("甲乙<&丙 \n", min_size=40, max_size=40),
    st.sets(st.tuples(st.integers(0, 24), st.integers(1, 15), st.sampled_from("abc")), max_size=15),
    st.sets(st.integers(1, 40)),
)
def test_pieces_nest_end_at_cuts_and_make_up_their_entities(text, spans, cuts):
    entities = sorted(Entity(start, start + size, kind, 1.0) for start, size, kind in spans)
    pieces = nested_pieces(entities, sorted(cuts))
    for number, piece in enumerate(pieces):
        assert piece.start < piece.end and not cuts & set(range(piece.start + 1, piece.end))
        assert all(other.start >= piece.end or other.end <= piece.end for other in pieces[number + 1 :]), "they cross"
    for entity in entities:
        parts = [piece for piece in pieces if piece.entity is entity]
        assert parts[0].start == entity.start and parts[-1].end == entity.end
        assert all(part.end == following.start for part, following in pairwise(parts))
        assert [part.is_first for part in parts] == [True] + [False] * (len(parts) - 1)
        assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    read = parsed(record(text, *(entity[:4] for entity in entities)))
    lines = [place + 1 for place, character in enumerate(text) if character == "\n"]
    assert read.texts == [text]
    assert [tuple(mark[:2]) for mark in read.marks[0]] == [(p.start, p.end) for p in nested_pieces(entities, lines)]
