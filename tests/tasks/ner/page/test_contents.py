"""Long pages: sections, paragraphs, the table of contents and the list of entities."""

import re

import pytest

from tasks.ner.examples import Entity
from tasks.ner.page.boxes import nested_pieces
from tasks.ner.page.contents import places_of
from tasks.ner.page.sections import SECTION_CHARACTERS, is_heading, sections_of
from tests.tasks.ner.page.parsing import Page, page, record

LINE = "一" * 99 + "\n"


def paragraphs_of(text):
    return [[text[start:end] for start, end in section] for section in sections_of(text)]


TEXTS = {
    "empty": "",
    "one line": "甲",
    "all kinds of line ends": "\n\r\n甲\r乙\r\n\n丙\n",
    "lines": LINE * 100,
    "headings": "第一回 甲\n" + LINE * 10 + "第二回 乙\n" + LINE,
    "no line end": "甲乙丙丁。" * 4000,
    "no end of a sentence": "甲" * 20_001,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_sections_cover_the_text_and_are_of_a_bounded_size(text):
    spans = [span for section in sections_of(text) for span in section]
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    assert all(section[-1][1] - section[0][0] < 3 * SECTION_CHARACTERS for section in sections_of(text))


def test_paragraphs_are_the_lines():
    assert paragraphs_of(TEXTS["all kinds of line ends"]) == [["\n", "\r\n", "甲\r", "乙\r\n", "\n", "丙\n"]]


def test_a_section_begins_with_a_heading_or_when_the_last_is_long_enough():
    assert [section[0] for section in paragraphs_of(TEXTS["headings"])] == ["第一回 甲\n", "第二回 乙\n"]
    assert {len(section) for section in paragraphs_of(TEXTS["lines"])} == {SECTION_CHARACTERS // 100}


def test_a_long_line_is_cut_at_ends_of_sentences():
    pieces = [piece for section in paragraphs_of(TEXTS["no line end"]) for piece in section]
    assert len(pieces) == 10 and all(piece.endswith("。") for piece in pieces)


@pytest.mark.parametrize(
    "line", ["第十二回 宴桃園豪傑三結義\n", "　　第3章 数据", "第一部分 招生政策规定", "## 结果", "Chapter IV"]
)
def test_headings(line):
    assert is_heading(line)


@pytest.mark.parametrize("line", ["", "他第一回来北京。", "第二天，他去了北京。", "#标签", "第一章" + "很长" * 40])
def test_other_lines_are_no_headings(line):
    assert not is_heading(line)


def test_a_short_page_has_a_list_of_entities_but_no_contents():
    parsed = Page(page(record("北京", (0, 2, "a", 1.0)), record("上海")))
    assert parsed.contents == ["北京 1"] and "#text1" in parsed.links
    assert parsed.ids == ["only0", "text1", "e1", "text2"]
    assert "nav" not in Page(page(record("北京"))).tags


def test_a_type_is_listed_with_how_many_and_how_many_different_ones():
    content = page(record("北京、上海、北京", (0, 2, "a", 1.0), (3, 5, "a", 1.0), (6, 8, "a", 1.0)))
    assert "<small>3 (2 different)</small>" in content and Page(content).contents == ["北京 2", "上海 1"]


def test_contents_lead_to_the_sections_of_a_long_text_with_counts_by_type():
    text = "第一回 甲\n" + LINE * 10 + "第二回 <乙>\n" + LINE * 20 + "丙" * 30
    second = text.index("第二回")
    parsed = Page(page(record(text, (0, 3, "a", 1.0), (8, 9, "b", 1.0), (second, second + 3, "a", 1.0))))
    last = len(text) - 30
    assert parsed.links[:4] == ["#text1", "#text1", f"#text1-{second}", f"#text1-{last}"]
    lines = [" ".join(line.split()) for line in parsed.contents[:4]]
    assert lines == ["1 第一回 甲 2 1", "0 第一回 甲 1 1", f"{second:,} 第二回 <乙> 1", f"{last:,} {'丙' * 24}…"]
    assert parsed.texts == [text]
    assert parsed.paragraphs[0][0] == "第一回 甲\n"


def test_short_texts_share_an_entry_until_they_are_as_long_as_a_section():
    texts = ["", "甲" * 500, "乙" * 1500, "丙", LINE * 50, "丁"]
    places = places_of(texts, [sections_of(text) for text in texts], [[] for _ in texts])
    assert [place.number for place in places] == ["1–3", "4", "5", "6"]
    assert [place.anchor for place in places] == ["text1", "text4", "text5", "text6"]
    assert [len(place.parts) for place in places] == [0, 0, 3, 0]


def test_entities_are_listed_by_frequency_with_a_link_to_the_first_mention():
    at = len(LINE) * 50
    text = LINE * 50 + "北京、上海、上海、<b>"
    entities = [(at, at + 2, "a", 1.0), (at + 3, at + 5, "a", 1.0), (at + 6, at + 8, "a", 1.0)]
    content = page(record(text, *entities), record("北京<b>", (0, 2, "b", 1.0), (0, 5, "b", 2.0)))
    parsed = Page(content)
    assert parsed.contents[-4:] == ["上海 2", "北京 1", "北京 1", "北京<b> 1"]
    first_mentions = {mark[2]["id"]: mark[:2] for marks in parsed.marks for mark in marks if "id" in mark[2]}
    assert len(first_mentions) == 4
    (shanghai,) = re.findall(r'<a href="#(e\d+)" lang="zh">上海</a>', content)
    assert first_mentions[shanghai] == [at + 3, at + 5]


def test_an_entity_over_a_line_end_is_drawn_in_pieces_and_linked_once():
    text = "甲" * 2000 + "北\n京" + LINE * 50
    parsed = Page(page(record(text, (2000, 2003, "a", 1.0))))
    pieces = [(start, end, "id" in attributes, attributes["class"]) for start, end, attributes in parsed.marks[0]]
    assert pieces == [(2000, 2002, True, "t0 goes-on-right"), (2002, 2003, False, "t0 goes-on-left")]
    assert parsed.texts == [text]


def test_pieces_end_at_cuts_and_nest():
    outer, inner = Entity(0, 10, "a", 1.0), Entity(3, 6, "b", 1.0)
    pieces = [(piece.start, piece.end, piece.entity.type) for piece in nested_pieces([outer, inner], [4, 8, 10])]
    assert pieces == [(0, 4, "a"), (3, 4, "b"), (4, 8, "a"), (4, 6, "b"), (8, 10, "a")]


def test_a_page_of_several_hundred_thousand_characters():
    text = LINE * 3000
    entities = [(start, start + 2, "a", 1.0) for start in range(0, len(text) - 2, 50)]
    content = page(record(text, *entities))
    parsed = Page(content)
    assert parsed.texts == [text] and len(parsed.paragraphs[0]) == 3000
    assert [tuple(mark[:2]) for mark in parsed.marks[0]] == [entity[:2] for entity in entities]
    assert content.count("<section") == 150
