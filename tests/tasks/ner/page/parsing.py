"""Pages, drawn and read again."""

import io
import re
from html.parser import HTMLParser

from tasks.ner.page.html import write_html
from tasks.ner.spans import probability

VOID = {"meta", "br", "img", "link", "input"}


class Page(HTMLParser):
    """Checks that tags are closed in order and links lead somewhere, and collects texts, their marks and paragraphs."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.marks, self.legend = [], set(), [], [], []
        self.attributes = []  # (tag, name of the attribute, value)
        self.paragraphs, self.contents, self.ids, self.links = [], [], [], []
        self.feed(content)
        self.close()
        assert self.open == []
        assert len(set(self.ids)) == len(self.ids)
        assert {link.removeprefix("#") for link in self.links} <= set(self.ids)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), names
        if tag not in VOID:
            self.open.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attributes]
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
    """A record whose probabilities are those of the temperature 2."""
    keys = ("start", "end", "type", "score")
    entities = [{**dict(zip(keys, entity)), "probability": probability(entity[3], 2.0)} for entity in sorted(entities)]
    return {"text": text, "entities": [{**e, "text": text[e["start"] : e["end"]]} for e in entities]}


def page(*records, types=("a", "b", "c"), name="file", **options):
    file = io.StringIO()
    write_html(file, list(records), types, name, **options)
    return file.getvalue()
