"""The page of texts and entities: escaped, well-formed, with the very text in it, a way into long ones."""

import io
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope.tasks.ner.arguments import probability
from paddle_rope.tasks.ner.examples import Entity, as_record
from paddle_rope.tasks.ner.page import LANGUAGES
from paddle_rope.tasks.ner.page.html import WORDS, write_html
from paddle_rope.tasks.ner.page.layout import SECTION_CHARACTERS, nested_pieces, sections_of
from tests.helpers.browser import chromium, open_page

VOID = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """The texts of a page, their marks as [start, end, attributes], and lists. Refuses tags that are not closed in
    order, ids and attributes that are there twice, and links that lead nowhere."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.ids, self.links = [], set(), [], [], []
        self.texts, self.marks, self.legend, self.contents = [], [], [], []
        self.feed(content)
        self.close()
        assert self.open == [] and len(set(self.ids)) == len(self.ids)
        assert {link.removeprefix("#") for link in self.links} <= set(self.ids)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open += [tag] * (tag not in VOID)
        self.attributes += [(tag, *attribute) for attribute in attributes]
        assert len(dict(attributes)) == len(attributes)
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        if tag == "a" and re.fullmatch(r"text\d+", attributes.get("id", "")):
            self.texts.append("")
            self.marks.append([])
        elif tag == "mark":
            self.marks[-1].append([len(self.texts[-1]), None, attributes])
        elif tag == "li":
            (self.contents if "nav" in self.open else self.legend).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "mark":
            next(mark for mark in reversed(self.marks[-1]) if mark[1] is None)[1] = len(self.texts[-1])

    def handle_data(self, data):
        if "main" in self.open and "p" in self.open:
            self.texts[-1] += data
        elif "li" in self.open:
            (self.contents if "nav" in self.open else self.legend)[-1] += data


def record(text, *entities):
    """A record whose probabilities have the temperature 2."""
    return as_record(text, [Entity(*entity, probability(entity[3], 2.0)) for entity in sorted(entities)])


def page(*records, types=("a", "b", "c"), name="file", **options):
    write_html(file := io.StringIO(), list(records), types, name, **options)
    return file.getvalue()


def parsed(*records, **options):
    return Page(page(*records, **options))


NEST = [(0, 2, "b", 3.04), (0, 4, "a", 2.0), (0, 8, "a", 1.5), (2, 4, "c", 12.0), (9, 11, "b", 0.26)]


@pytest.mark.parametrize("entities, expected", [
    (NEST, ["0-8 a 0.68 h2", "0-4 a 0.73 h1", "0-2 b 0.82 h0", "2-4 c 1.00 h0", "9-11 b 0.53 h0"]),
    ([(0, 2, "a", 1.0), (0, 2, "b", -1e4)], ["0-2 a 0.62 h1", "0-2 b 0.00 h0"]),
    # of crossing entities the later is drawn in pieces that go on
    ([(0, 4, "a", 1.0), (2, 6, "b", 2.0)],
     ["0-4 a 0.62 h1", "2-4 b 0.73 h0 goes-on-right", "4-6 b 0.73 h0 goes-on-left"]),
])  # fmt: skip
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
    entities = [(0, len(text), text, 1.0), (1, 4, "a", 2.0), (2, 6, text, 3.0), (7, 8, "only in a dictionary", 1.0)]
    content = page(record(text, *entities), types=["nowhere", "a", text], name=text)
    read = Page(content)
    assert read.texts == [text] and read.marks[0][0][2]["data-type"] == text
    assert not {"script", "img"} & read.tags and content.count("<style>") == 1 and "<!--" not in content
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert "\r" not in content  # which a browser would turn into a line feed: it is written as a reference
    assert read.legend == ["a 1", f"{text} 2", "only in a dictionary 1"]


def test_the_page_needs_nothing_else_may_load_nothing_and_shows_control_characters():
    content = page(record("a\x00\x1b[31m\x7fb", (0, 2, "a", 1.0)))
    assert content.startswith("<!DOCTYPE html>\n") and 'charset="utf-8"' in content
    assert not re.search(r"https?:|//|url\(|@import|src=|<link|<script", content)
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\"" in content
    assert Page(content).texts == ["a\u2400\u241b[31m\u2421b"]
    assert parsed(record("ab"), record("")).texts == ["ab", ""] and (parsed().texts, parsed().legend) == ([], [])


@pytest.mark.parametrize("language, probability, score", [("en", "probability", "score"), ("zh", "概率", "得分")])
def test_probabilities_without_temperatures_are_called_scores_in_each_language(language, probability, score):
    one = record("北京", (0, 2, "a", 2.0))
    for calibrated, word in ((True, probability), (False, score)):
        content = page(one, record("上海"), calibrated=calibrated, language=language)
        read = Page(content)
        assert read.marks[0][0][2]["title"].endswith(f"{word} 0.731") and ("html", "lang", language) in read.attributes
    assert WORDS[language]["score of a box"] in content


def test_each_language_has_all_words_with_the_same_places():
    def places(text):
        return sorted(set(re.findall(r"{\w*}", str(text))))

    english, chinese = (WORDS[language] for language in LANGUAGES)
    assert {name: places(text) for name, text in english.items()} == {n: places(t) for n, t in chinese.items()}
    content = re.sub(r"<style>.*?</style>|<[^>]*>", "", page(record("北京"), name="", language="zh"), flags=re.DOTALL)
    assert set(WORDS) == set(LANGUAGES) and not re.search("[a-z]", content)


@settings(max_examples=30)
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


# ---- long texts

LINE = "一" * 99 + "\n"
FULL = SECTION_CHARACTERS // 100  # lines
TEXTS = {  # name: (text, lengths of the paragraphs of each section)
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


def test_a_short_page_lists_its_entities_by_frequency_without_contents():
    content = page(record("北京、上海、上海", *((start, start + 2, "a", 1.0) for start in (0, 3, 6))), record("丙"))
    read = Page(content)
    assert "3 (2 different)" in content and read.contents == ["上海 2", "北京 1"]
    assert read.links == ["#e2", "#e1", "#text1", "#text2"]
    assert [(mark[0], mark[2].get("id")) for mark in read.marks[0]] == [(0, "e1"), (3, "e2"), (6, None)]
    assert "nav" not in parsed(record("北京")).tags


def test_contents_lead_to_sections_and_an_entity_over_a_line_end_is_linked_once():
    text = "第一回 甲\n" + LINE * 10 + "第二回 <乙>\n" + LINE * 20 + "丙" * 30
    second, last = text.index("第二回"), len(text) - 30
    read = parsed(record(text, (0, 3, "a", 1.0), (8, 9, "b", 1.0), (second + 4, second + 9, "a", 1.0)))
    assert read.links[:4] == ["#text1", "#text1", f"#text1-{second}", f"#text1-{last}"]
    lines = [" ".join(line.split()) for line in read.contents[:4]]
    assert lines == ["1 第一回 甲 2 1", "0 第一回 甲 1 1", f"{second:,} 第二回 <乙> 1", f"{last:,} {'丙' * 24}…"]
    assert read.texts == [text]
    pieces = [("id" in attributes, attributes["class"]) for _, _, attributes in read.marks[0]]
    assert pieces[2:] == [(True, "t0 goes-on-right"), (False, "t0 goes-on-left")]
    # short texts share an entry until they are as long as a section
    read = parsed(*map(record, ["", "甲" * 500, "乙" * 1500, "丙", LINE * 50, "丁"]))
    assert [line.split()[0] for line in read.contents] == ["1–3", "4", "5", "0", "2,000", "4,000", "6"]
    assert read.links[:4] == ["#text1", "#text4", "#text5", "#text5"]


# ---- in a browser
LABEL = "getComputedStyle(document.querySelectorAll('mark')[{}], '::after').content"


def shown(browser):
    """Types of the marks that are drawn."""
    return browser.run(
        "[...document.querySelectorAll('mark')].filter(mark => getComputedStyle(mark).borderTopWidth != '0px')"
        ".map(mark => mark.dataset.type)"
    )


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="no browser: apt-get install chromium")
def test_a_browser_shows_chosen_types_alone_and_runs_no_script_of_a_text(tmp_path):
    hostile = "<script>document.title='changed'</script><img src=x onerror=\"document.title='changed'\">"
    text = f"北京大学和校长{hostile}"
    entities = [(0, 2, "a", 1.0), (0, 4, "b", 1.0), (5, 7, hostile, 1.0)]
    path = tmp_path / "page.html"
    path.write_text(page(record(text, *entities), types=["a", "b", hostile], name=hostile), encoding="utf-8")
    laid_out = "document.querySelector('main p').innerText"  # not before the first frame
    with open_page(tmp_path) as browser:
        browser.open(path.as_uri())
        browser.wait_for(laid_out)
        assert browser.run(laid_out) == text and browser.run("document.title").startswith("Entities of <script>")
        assert browser.run("document.scripts.length + document.images.length") == 0
        before = browser.text()
        assert shown(browser) == ["b", "a", hostile]
        browser.run("document.getElementById('only1').click()")
        assert shown(browser) == ["b"] and browser.run(LABEL.format(1)) == "none"
        browser.wait_for(laid_out)
        listed = "[...document.querySelectorAll('nav [class^=t]')]"
        assert browser.run(f"{listed}.filter(e => e.checkVisibility()).length") <= 1
        browser.run("document.getElementById('only2').click()")
        assert shown(browser) == ["b", hostile]
        browser.run("document.querySelector('button').click()")
        browser.wait_for(laid_out)
        assert shown(browser) == ["b", "a", hostile] and browser.text() == before
        assert browser.errors == []
