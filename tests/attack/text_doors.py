"""Inputs of any size for places that take in a stranger's bytes: files of text with and without labels, configurations,
and texts for tokenizers, patterns, pages and scores.

A door is a function from a size to a :class:`Sent`. Work and answer have to be at most linear in the bytes sent.
"""

import contextlib
import functools
import gzip
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numpy as np
import pyarrow.parquet

from paddle_rope.roformer import WordPieceTokenizer, WordTokenizer
from paddle_rope.tasks.classification.data import LABELED as CLASSES
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import json_line
from paddle_rope.tasks.common.texts import text_files
from paddle_rope.tasks.common.texts.documents import read_documents
from paddle_rope.tasks.common.word_vectors import SIZE, WordVectors
from paddle_rope.tasks.matching.data import LABELED as PAIRS
from paddle_rope.tasks.ner.data.inspection import inspect
from paddle_rope.tasks.ner.data.reading import EntityTextStream, read_labeled
from paddle_rope.tasks.ner.examples import Entity, Example, as_record
from paddle_rope.tasks.ner.formats import TEXT_FORMATS
from paddle_rope.tasks.ner.metrics import scores_and_errors
from paddle_rope.tasks.ner.page.html import write_html
from paddle_rope.tasks.ner.prediction import entity_filter, selection
from paddle_rope.tasks.ner.prediction.predictor import SPANS_PER_TOKEN
from paddle_rope.tasks.relations.decoding import RELATED, all_scored, between, linked_spans, related_record
from paddle_rope.tasks.scaling.formats import open_source, parts_of
from tests.attack.settings_targets import NAME, read_configuration, read_plan
from tests.attack.text_targets import FLAT
from tests.conftest import SMALL_BERT_VOCAB, SMALL_WORD_VOCAB


class Sent(NamedTuple):
    """What goes in: so many bytes, by a function that returns the number of bytes of the answer."""

    bytes: int
    receive: Callable[[], int]


Door = Callable[[int], Sent]
A = "a".__mul__  # texts in which each place is like all others
SENTENCE = "浙商银行企业信贷部叶老桂博士在杭州。"


def text_of(n):
    return (SENTENCE * (n // len(SENTENCE) + 1))[:n]


def distinct(n):
    return [f"企{number:05}" for number in range(n)]


@functools.cache
def place():
    return tempfile.TemporaryDirectory(prefix="attack-work-")  # removed at the end of the process


# ---- files
def stored(read, content_of, name=NAME) -> Door:
    """A file, whose content for a size is text or bytes; ``read`` takes its path."""

    def door(n):
        path, content = Path(place().name) / name, content_of(n)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

        def receive():
            try:
                return read(path)
            except InputError as error:
                return len(str(error))

        return Sent(path.stat().st_size, receive)

    return door


def converted(path, format="jsonl"):
    """Labeled data as JSON lines, which repeat types and surfaces; or as tags, which repeat types at each character."""
    return sum(map(len, TEXT_FORMATS[format].write(read_labeled(path)[0])))


def streamed(path):
    """Texts to predict; what a pipe brings at once is shorter than a block of a file."""
    with mock.patch.object(text_files, "READ_BYTES", 1 << 9):
        return sum(len(text) for chunk in EntityTextStream(path) for text, _ in chunk)


def in_parts(path):
    """Many documents, as a worker reads them."""
    keys = (("text",),)
    parts = parts_of([str(path)], keys, 100)
    source = open_source(str(path), keys)
    with source.file:
        return sum(len(str(found.raw)) for part in parts for found in source.read(part))


def of_parquet(n):
    """The same long text again and again, stored once."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": [text_of(10_000)] * n}), file)
    return file.getvalue()


def labeled(format):
    """Many texts, and one text of many entities, each of another type."""

    def content(n):
        one = Example("甲。" * n, tuple(Entity(2 * i, 2 * i + 1, f"t{i}") for i in range(n)), "")
        return "".join(TEXT_FORMATS[format].write([*FLAT * (n // 4), one]))

    return stored(converted, content)


def related(n):
    """Relations between the entities of a text."""
    entities = [{"id": i, "label": "a", "start_offset": 2 * i, "end_offset": 2 * i + 1} for i in range(n)]
    relations = [{"id": i, "from_id": i, "to_id": n - 1 - i, "type": f"t{i}"} for i in range(n)]
    return json_line({"text": "甲。" * n, "entities": entities, "relations": relations})


def triples(n):
    """Triples of DuIE, whose entities are searched for in the text."""
    ends = [f"{i:04}" for i in range(min(n, 900))]
    one = {"subject_type": "a", "predicate": "r", "object_type": "b"}
    found = [{**one, "subject": ends[i % len(ends)], "object": ends[i * i % len(ends)]} for i in range(n)]
    return json_line({"text": "".join(ends) + text_of(10 * n), "spo_list": found})


def of_brat(n):
    path = Path(place().name) / f"{NAME}.txt"
    path.write_text("甲。" * n, encoding="utf-8")
    return "".join(f"T{i}\tt{i} {2 * i} {2 * i + 1}\t甲\nR{i}\tof Arg1:T{i} Arg2:T0\n" for i in range(n))


def marked(label_of, read=converted) -> Door:
    """A record of labels in a text of as many characters as its size."""
    return stored(read, lambda n: json_line({"text": A(n), "label": label_of(n)}))


LABELED = {  # name -> a door and its size
    **{format: (labeled(format), 300) for format in TEXT_FORMATS},
    "relations": (stored(converted, related), 500),
    "triples": (stored(converted, triples), 1000),
    "brat": (stored(converted, of_brat, f"{NAME}.ann"), 500),
    "nested entities": (marked(lambda n: [[0, i + 1, "a"] for i in range(n)]), 300),
    "spans of a surface": (marked(lambda n: {"a": {A(n): [[0, n - 1]] * n}}), 5000),
    "a long type": (marked(lambda n: [[0, n, A(n)]], functools.partial(converted, format="bio")), 300),
    "columns of a table": (stored(converted, lambda n: f"text,label,{','.join(distinct(n))}\n甲,[]{',1' * n}"), 10_000),
    "tokens of a table": (stored(converted, lambda n: "word\ttag\n" + "甲\tB-X\n乙\tO\n" * n), 1000),
    "quotes": (stored(converted, lambda n: "text,label\n" + '"甲""\n' * n), 20_000),
    "keys": (stored(converted, lambda n: json_line({"text": "甲", "label": dict.fromkeys(distinct(n), {})})), 5000),
    "classes": (stored(lambda path: len(CLASSES.read_file(path)), lambda n: f"{SENTENCE}\t1\n" * n), 2000),
    "pairs": (stored(lambda path: len(PAIRS.read_file(path)), lambda n: f"{SENTENCE}\t乙\t1\n" * n), 2000),
}
UNLABELED = {  # name -> a door and its size
    "lines": (stored(streamed, lambda n: f"{SENTENCE}\n" * n), 5000),
    "one line": (stored(streamed, "甲".__mul__), 500_000),
    "blank lines": (stored(streamed, "\n".__mul__), 20_000),
    "lines of brackets": (stored(streamed, "[\n".__mul__), 20_000),
    "a list": (stored(streamed, lambda n: "[" + '"甲",\n' * n + '"乙"]'), 2000),
    "documents": (stored(lambda path: len(read_documents([path])), lambda n: f"{SENTENCE}\n\n" * n), 5000),
    "parts": (stored(in_parts, lambda n: json_line({"text": SENTENCE}) * n, "texts.jsonl"), 2000),
    "parts of gzip": (stored(in_parts, lambda n: gzip.compress(f"{SENTENCE}\n".encode() * n), "texts.txt.gz"), 4000),
    "parts of Parquet": (stored(in_parts, of_parquet, "texts.parquet"), 600),
    "parts of a table": (stored(in_parts, lambda n: "id,text\n" + f'1,"甲\n{SENTENCE}"\n' * n, "texts.csv"), 2000),
    "parts of quotes": (stored(in_parts, lambda n: "id,text\n" + '1,"甲""\n' * n, "texts.csv"), 3000),
}


def configuration(content_of) -> Door:
    return stored(lambda path: read_configuration(path.parent) or 0, content_of)


def plan(content_of) -> Door:
    begin = "output_dir: x\nrecipe: ner\nscores: {dev.f1: F1}\n"
    return stored(lambda path: read_plan(path.parent) or 0, lambda n: begin + content_of(n))


def named(key, n, settings="{}"):
    return f"{key}:\n" + "".join(f"  v{number}: {settings}\n" for number in range(n))


def aliases(n):
    return "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, n))


CONFIGURATIONS = {
    "aliases": (configuration(aliases), 100),
    "items": (configuration(lambda n: f"seed: [{'1, ' * n}]"), 3000),
    "keys": (configuration(lambda n: "".join(f"{key}: 1\n" for key in distinct(n))), 2000),
    "brackets": (configuration(lambda n: "seed: " + "[" * n), 5000),
    "digits": (configuration(lambda n: "seed: " + "9" * n), 100_000),
    "runs of a plan": (plan(lambda n: f"seeds: {list(range(n))}\n{named('variants', n)}{named('cases', n)}"), 12),
    "variants of a plan": (
        plan(lambda n: named("variants", n, "{start_from: v0}").replace("{start_from: v0}", "{}", 1)),
        300,
    ),
}


# ---- texts in memory
def called(receive, content_of) -> Door:
    """A function of a text, or of several."""

    def door(n):
        content = content_of(n)
        return Sent(len("".join(content).encode()), lambda: receive(content))

    return door


def with_vectors(words):
    """Vectors of words in a folder, written and read."""
    WordVectors(words, np.ones([len(words), SIZE]).cumsum(1)).save_pretrained(place().name)
    return len(WordVectors.from_pretrained(place().name).words)


def matched(pattern):
    """The places of a pattern, with less time than users have."""

    def receive(text):
        with mock.patch.object(entity_filter, "PATTERN_SECONDS", 0.05), contextlib.suppress(InputError):
            entity_filter.EntityRuler([], [(pattern, "a", entity_filter.HINT)]).hinted(text)
        return 0

    return receive


def selected(texts):
    """Texts without near duplicates, each compared with fewer than users' are, which is soon as many as it can be."""
    with mock.patch.object(selection, "MOST_COMPARED", 10):
        return len(selection.rank(texts, [1.0] * len(texts), len(texts)))


def crowded(text, *sizes):
    """Entities of some sizes at each place of a text, and one that is the text."""
    places = [(i, i + size) for i in range(len(text)) for size in sizes if i + size <= len(text)]
    return [Entity(start, end, "a", 1.0, 0.5) for start, end in sorted({(0, len(text)), *places})]


def drawn(text, *sizes, are_related=False):
    """A page of a text and such entities, which may all be related to the first one."""
    file, record = io.StringIO(), as_record(text, crowded(text, *sizes))
    if are_related:
        tails = range(len(record["entities"]))
        record["relations"] = [{"head": 0, "tail": tail, "type": "r", "probability": 0.5} for tail in tails]
    write_html(file, [record], ["a"], "texts")
    return len(file.getvalue())


WINDOW = 40  # tokens
CONFIG = SimpleNamespace(
    types=["a"], relations=["r", "s"], temperatures=1.0, max_span_length=None,
    relation_thresholds=0.0, relation_temperatures=1.0,
)  # fmt: skip


def all_related(text):
    """The record of a text whose windows a model takes for nothing but entities, all of them related."""
    scores = np.ones([1, 2, WINDOW, WINDOW], dtype="float32")
    bounds, found = [], []
    for begin in range(0, len(text), WINDOW):
        offsets = [(place, place + 1) for place in range(begin, begin + WINDOW)]
        of_pairs = all_scored(scores, scores)
        (spans,) = linked_spans(CONFIG, np.triu(scores[:, :1]), 0.0, SPANS_PER_TOKEN * WINDOW, [WINDOW], of_pairs)
        found.append(RELATED.decode(CONFIG, offsets, spans, None))
        bounds.append((begin - 1, begin + WINDOW + 1))
    return len(json_line(related_record(text, between(*RELATED.merge(bounds, found)))))


def scored(text):
    """The kinds of errors, where the entities of a text are one character longer than those that are found."""
    scores_and_errors([Example(text, tuple(crowded(text, 3)), "")], [crowded(text, 2)], ["a"])
    return 0


def inspected(text):
    return len(inspect({"train": [Example(text, tuple(crowded(text, 3, 7)), "")]})["findings"])


def tokenized(tokenizer):
    """The tokens of a text."""
    return lambda text: len(tokenizer.encode(text).ids)


WORDS, PIECES = WordTokenizer(SMALL_WORD_VOCAB), WordPieceTokenizer(SMALL_BERT_VOCAB)
# Before Python 3.11 the search for a*b hears of the limit only when it has ended: see time_limit.
FROM_EACH_PLACE = "a*b" if sys.version_info >= (3, 11) else "a*?b"
IN_MEMORY = {
    "words": (called(tokenized(WORDS), "learning 中国\u0301".__mul__), 1000),
    "letters of a word": (called(tokenized(WORDS), A), 5000),
    "pieces": (called(tokenized(PIECES), "learning 中国\u0301".__mul__), 2000),
    "inspection": (called(inspected, text_of), 500),
    "a pattern of a pattern": (called(matched("(a+)+b"), A), 2500),
    "a pattern from each place": (called(matched(FROM_EACH_PLACE), A), 10_000),
    "a page": (called(lambda text: drawn(text, 3, 7), text_of), 300),
    "a page of an entity": (called(drawn, "甲\n".__mul__), 400),
    "a page of relations": (called(lambda text: drawn(text, 3, are_related=True), text_of), 300),
    "relations of a model": (called(all_related, lambda n: text_of(WINDOW * n)), 10),
    "scores": (called(scored, text_of), 1000),
    "word vectors": (called(with_vectors, distinct), 20_000),
    "texts to select": (called(selected, distinct), 2000),
    "like texts to select": (called(selected, lambda n: [SENTENCE[:9] + one for one in distinct(n)]), 500),
}
