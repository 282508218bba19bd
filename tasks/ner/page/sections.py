"""Where a long text can be entered: its sections, and their paragraphs."""

from __future__ import annotations

import re

from tasks.common.texts.documents import cut_at_sentences

SECTION_CHARACTERS = 2000
# A line that is a heading: a numbered part, chapter or section, or a heading of Markdown.
_NUMBER = "[〇零一二三四五六七八九十百千两0-9０-９]{1,9}"
_HEADING = re.compile(
    rf"[ \t\u3000]*(?:第{_NUMBER}[部卷篇编編章回节節话話幕集]|(?:Part|Book|Chapter|Section) [0-9IVXLC]+\b|#{{1,6}} )"
)
_LONGEST_HEADING = 60

Span = tuple[int, int]  # half-open characters of the text


def sections_of(text: str) -> list[list[Span]]:
    """The sections of a text, each the list of its paragraphs; together they cover it.

    A paragraph is a line with its end. One of more than twice ``SECTION_CHARACTERS`` is cut at ends of sentences, or,
    where there are none, after so many characters. A section begins with a heading, or with the first paragraph when
    the one before has ``SECTION_CHARACTERS``.
    """
    sections: list[list[Span]] = [[]]
    for start, end in _paragraphs(text):
        section = sections[-1]
        is_full = bool(section) and start - section[0][0] >= SECTION_CHARACTERS
        if section and (is_full or (is_heading(text[start:end]) and text[section[0][0] : start].strip())):
            sections.append([])
        sections[-1].append((start, end))
    return sections if sections[0] else [[(0, 0)]]


def is_heading(line: str) -> bool:
    """Whether a line of a text is a heading."""
    return len(line) <= _LONGEST_HEADING and _HEADING.match(line) is not None


def _paragraphs(text):
    for match in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        start, end = match.span()
        if end - start <= 2 * SECTION_CHARACTERS:
            yield start, end
            continue
        for piece in cut_at_sentences(text[start:end], SECTION_CHARACTERS):
            yield start, start + len(piece)
            start += len(piece)
