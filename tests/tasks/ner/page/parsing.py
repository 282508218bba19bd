"""Pages, drawn and read again."""

import io
import re
from html.parser import HTMLParser

from tasks.ner.config import probability
from tasks.ner.examples import Entity, as_record
from tasks.ner.page.html import write_html

VOID = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """The texts of a page, their marks as [start, end, attributes], paragraphs and lists. Refuses tags that are not
    closed in order, ids and attributes that are there twice, and links that lead nowhere."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.ids, self.links = [], set(), [], [], []
        self.texts, self.marks, self.paragraphs, self.legend, self.contents = [], [], [], [], []
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
            self.paragraphs.append([])
        elif tag == "p" and "main" in self.open:
            self.paragraphs[-1].append("")
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
            self.paragraphs[-1][-1] += data
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
