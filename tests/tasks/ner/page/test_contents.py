"""Long pages: sections, paragraphs, the table of contents and the list of entities."""

import time

import pytest

from tasks.ner.page.contents import SECTION_CHARACTERS, is_heading, sections_of
from tests.tasks.ner.page.parsing import Page, page, parsed, record

LINE = "一" * 99 + "\n"
FULL = SECTION_CHARACTERS // 100  # lines
# name: (text, lengths of the paragraphs of each section)
TEXTS = {
    "empty": ("", [[0]]),
    "all kinds of line ends": ("\n\r\n甲\r乙\r\n\n丙\n", [[1, 2, 2, 3, 1, 2]]),
    "lines": (LINE * 50, [[100] * FULL, [100] * FULL, [100] * (50 - 2 * FULL)]),
    "headings": ("第一回 甲\n" + LINE * 10 + "第二回 乙\n" + LINE, [[6, *[100] * 10], [6, 100]]),
    "no line end": ("甲乙丙丁。" * 1000, [[2000], [2000], [1000]]),
    "no end of a sentence": ("甲" * 4001, [[2000], [2000], [1]]),
}


@pytest.mark.parametrize("text, lengths", TEXTS.values(), ids=TEXTS)
def test_sections_begin_with_a_heading_or_when_the_last_is_long_enough(text, lengths):
    spans = [span for section in sections_of(text) for span in section]
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    assert [[end - start for start, end in section] for section in sections_of(text)] == lengths


HEADINGS = ["第十二回 宴桃園豪傑三結義\n", "　　第3章 数据", "第一部分 招生政策规定", "## 结果", "Chapter IV"]
OTHERS = ["", "他第一回来北京。", "第二天，他去了北京。", "#标签", "第一章" + "很长" * 40]


@pytest.mark.parametrize("line", HEADINGS + OTHERS)
def test_headings(line):
    assert is_heading(line) == (line in HEADINGS)


def test_a_short_page_lists_its_entities_by_frequency_without_contents():
    content = page(record("北京、上海、上海", *((start, start + 2, "a", 1.0) for start in (0, 3, 6))), record("丙"))
    read = Page(content)
    assert "3 (2 different)" in content and read.contents == ["上海 2", "北京 1"]
    assert read.links == ["#e2", "#e1", "#text1", "#text2"]
    assert [(mark[0], mark[2].get("id")) for mark in read.marks[0]] == [(0, "e1"), (3, "e2"), (6, None)]
    assert "nav" not in parsed(record("北京")).tags


def test_contents_lead_to_the_sections_of_a_long_text_with_counts_by_type():
    text = "第一回 甲\n" + LINE * 10 + "第二回 <乙>\n" + LINE * 20 + "丙" * 30
    second, last = text.index("第二回"), len(text) - 30
    read = parsed(record(text, (0, 3, "a", 1.0), (8, 9, "b", 1.0), (second, second + 3, "a", 1.0)))
    assert read.links[:4] == ["#text1", "#text1", f"#text1-{second}", f"#text1-{last}"]
    lines = [" ".join(line.split()) for line in read.contents[:4]]
    assert lines == ["1 第一回 甲 2 1", "0 第一回 甲 1 1", f"{second:,} 第二回 <乙> 1", f"{last:,} {'丙' * 24}…"]
    assert read.texts == [text] and read.paragraphs[0][0] == "第一回 甲\n"


def test_short_texts_share_an_entry_until_they_are_as_long_as_a_section():
    read = parsed(*map(record, ["", "甲" * 500, "乙" * 1500, "丙", LINE * 50, "丁"]))
    assert [line.split()[0] for line in read.contents] == ["1–3", "4", "5", "0", "2,000", "4,000", "6"]
    assert read.links[:4] == ["#text1", "#text4", "#text5", "#text5"]


def test_an_entity_over_a_line_end_is_drawn_in_pieces_and_linked_once():
    text = "甲" * 2000 + "北\n京" + LINE * 50
    read = parsed(record(text, (2000, 2003, "a", 1.0)))
    pieces = [(start, end, "id" in attributes, attributes["class"]) for start, end, attributes in read.marks[0]]
    assert pieces == [(2000, 2002, True, "t0 goes-on-right"), (2002, 2003, False, "t0 goes-on-left")]
    assert read.texts == [text]


def test_a_page_of_several_hundred_thousand_characters_is_drawn_in_seconds():
    text = LINE * 3000
    entities = [(start, start + 2, "a", 1.0) for start in range(0, len(text) - 2, 20)]
    begin = time.process_time()
    content = page(record(text, *entities))
    assert time.process_time() - begin < 3  # half a second on an idle machine
    read = Page(content)
    assert read.texts == [text] and len(read.paragraphs[0]) == 3000 and content.count("<section") == 150
    assert [tuple(mark[:2]) for mark in read.marks[0]] == [entity[:2] for entity in entities]
