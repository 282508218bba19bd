"""Reading of pairs and triples, with validation.

The formats are recognized by the content:

- Tab separated, two texts and a label a line, as AFQMC, LCQMC, BQ and STS-B have it. Tabs separate and nothing else
  counts, no quotes either. A first line whose last column is the name of one is a header and is left out.
- JSON lines of pairs, as CLUE has them: ``{"sentence1": ..., "sentence2": ..., "label": "0"}``.
- JSON lines of triples, as CAIL2019-SCM has them: ``{"A": ..., "B": ..., "C": ...}``, with ``"label": "B"`` or ``"C"``,
  the candidate that is closer to A. In a file without labels it is B, as in the published data; B and C are then
  exchanged at random, always in the same way, so that the place of a candidate says nothing.
- One JSON list of such objects, or a table, CSV or TSV, whose header has their keys or other usual names of them.

A label is 0, 1 or a grade, any finite number. Blank lines are left out.
"""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of, records
from tasks.common.texts.json_records import check_encodable, json_text, parse_line
from tasks.common.texts.streams import LineStream
from tasks.common.texts.text_files import BLANKS, first_non_blank, place, read_text, shown, split_lines
from tasks.matching.config import GRADES, PAIRS, TRIPLES

HEADERS = {
    *("label", "labels", "score", "similarity", "grade", "is_duplicate"),
    *("sentence2", "text2", "text_b", "query2", "question2", "q2"),
}
PAIR_KEYS = ("sentence1", "sentence2")
TRIPLE_KEYS = ("A", "B", "C")
LABEL_KEYS = ("label", "score", "similarity", "grade", "is_duplicate")  # all but the first: of grades
EXCHANGE_SEED = 0
FORMAT = 'give two texts and a label between tabs, or JSON lines with "sentence1" and "sentence2", or "A", "B" and "C"'


class Example(NamedTuple):
    """Two texts, or a text A and its candidates B and C.

    Attributes:
        texts: tuple of two or three strings.
        label: of a pair 0 or 1, or a grade; of a triple 1 where the first candidate is closer and 0 where the second
            is. None where it is not known.
        where: "path:line".
    """

    texts: tuple
    label: float | None
    where: str

    @property
    def text(self):
        """The first text: examples that have it in common stay on one side where data are split."""
        return self.texts[0]


def task_of(examples):
    """One of :data:`tasks.matching.config.TASKS`: what labeled examples teach."""
    if len(examples[0].texts) == 3:
        return TRIPLES
    return PAIRS if all(example.label in (0, 1) for example in examples) else GRADES


def read_labeled(path):
    """The labeled examples of a file in its order, at least one, all pairs or all triples; ``-`` is standard input."""
    content, name = read_text(path)
    return read_lines(split_lines(content), name)


def read_lines(lines, name):
    """As :func:`read_labeled`, from the lines of a file called ``name``, or of records in memory."""
    parse = _LineParser(name)
    if first_non_blank(lines) is not None and _form_of(lines) in LineStream.read_whole:
        examples = [parse.of_record(record, where) for where, record in records(lines, name)]
    else:
        numbered = enumerate(lines, 1)
        examples = [example for number, line in numbered for example in parse(line, place(name, number))]
    parse.check_found()
    if len(examples[0].texts) == 3:
        return _with_candidates_exchanged(examples)
    for example in examples:
        if example.label is None:
            raise InputError(
                f"{example.where}: there is no label; give two texts and a label, or use the file for prediction only"
            )
    return examples


def _form_of(lines):
    """The form of lines; a header over two texts and a label between tabs is one more line of them."""
    form = form_of(lines)
    is_columns = form is Form.TABLE and first_non_blank(lines).count("\t") in (1, 2)
    return Form.PLAIN if is_columns else form


class ExampleStream(LineStream):
    """:class:`Example` of pairs or triples to predict, in chunks, see :class:`LineStream`. Labels need not be there and
    are left out; candidates stay in their order."""

    def __init__(self, source, chunk_items=2048):
        super().__init__(source, chunk_items)
        self._parse = _LineParser(self.name)

    def items_of(self, line, where):
        return [example._replace(label=None) for example in self._parse(line, where)]

    def form_of(self, lines):
        return _form_of(lines)

    def items_of_record(self, record, where):
        return [self._parse.of_record(record, where)._replace(label=None)]

    def check_end(self):
        self._parse.check_found()


class _LineParser:
    """From lines of a file called ``name``, in turn, to lists of at most one :class:`Example`. The first line that is
    not blank tells the format."""

    def __init__(self, name):
        self.name = name
        self.found = False
        self.is_json = None
        self.keys = None

    def __call__(self, line, where):
        if not line.strip(BLANKS):
            return []
        is_first = self.is_json is None
        if is_first:
            self.is_json = line.strip(BLANKS).startswith("{") and ("\t" not in line or _is_json(line))
        if self.is_json:
            example = self.of_record(parse_line(line, where), where)
        elif is_first and line.split("\t")[-1].strip().lower() in HEADERS:
            return []
        else:
            example = _of_columns(line, where)
        self.found = True
        return [example]

    def of_record(self, record, where):
        """The :class:`Example` of a record of JSON, or of a table."""
        self.found = True
        if self.keys is None:
            self.keys = TRIPLE_KEYS if TRIPLE_KEYS[0] in record else PAIR_KEYS
        texts = [json_text(record, where, (key,)) for key in self.keys]
        given = {key.lower(): value for key, value in record.items()}
        label = next((given[key] for key in LABEL_KEYS if given.get(key) not in (None, "")), None)
        if label is not None:
            label = _number(label, where) if self.keys is PAIR_KEYS else _closer(label, where)
        return _example(texts, label, where)

    def check_found(self):
        """Raise InputError if no line had an example."""
        if not self.found:
            what = "there is no text in it" if self.is_json is None else "there is only a header in it"
            raise InputError(f"{self.name}:1: {what}; {FORMAT}")


def _is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _of_columns(line, where):
    columns = line.split("\t")
    if len(columns) not in (2, 3):
        raise InputError(f"{where}: {len(columns)} columns, {shown(line)}; {FORMAT}")
    label = _number(columns[2].strip(), where) if len(columns) == 3 else None
    return _example(columns[:2], label, where)


def _example(texts, label, where):
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise InputError(f"{where}: text {number} of {len(texts)} is empty; remove the line or give it a text")
        check_encodable(text, f"text {number}", where)
    return Example(tuple(texts), label, where)


def _number(value, where):
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: label {shown(value)} is not a number; write 0, 1 or a grade such as 3.5")
    return number


def _closer(value, where):
    if value not in ("B", "C"):
        raise InputError(f'{where}: label {shown(value)}; name the text that is closer to A, "B" or "C"')
    return float(value == "B")


def _with_candidates_exchanged(examples):
    """Triples with labels as they are; without, B and C of a random half of them exchanged."""
    labeled = examples[0].label is not None
    for example in examples:
        if (example.label is not None) != labeled:
            here, there = ("no label", "one") if labeled else ("a label", "none")
            raise InputError(
                f"{example.where}: there is {here} here, but {there} in {examples[0].where}; label all triples or "
                "none (then B is the closer one in all)"
            )
    if labeled:
        return examples
    exchanged = np.random.RandomState(EXCHANGE_SEED).rand(len(examples)) < 0.5
    return [
        example._replace(texts=(example.texts[0], *example.texts[:0:-1]), label=0.0)
        if is_exchanged
        else example._replace(label=1.0)
        for example, is_exchanged in zip(examples, exchanged)
    ]


def labeled_record(example):
    """The JSON object of a labeled :class:`Example`, which :func:`read_lines` reads."""
    if len(example.texts) == 3:
        label = {} if example.label is None else {"label": "B" if example.label == 1 else "C"}
        return {**dict(zip(TRIPLE_KEYS, example.texts)), **label}
    return {**dict(zip(PAIR_KEYS, example.texts)), "label": example.label}


def prediction_records(tuples, scores, threshold=None):
    """Scored texts as they are written: dicts of texts, scores and, if the model says one, label, as labeled data.

    ``tuples`` are the texts of pairs or triples, ``scores`` ``[examples, candidates]``; from the score ``threshold`` on
    a pair has the label 1, and without one no label.
    """
    for texts, row in zip(tuples, scores.tolist()):
        if len(texts) == 3:
            yield {**dict(zip(TRIPLE_KEYS, texts)), "scores": row, "label": "B" if row[0] > row[1] else "C"}
        else:
            label = {} if threshold is None else {"label": int(row[0] >= threshold)}
            yield {**dict(zip(PAIR_KEYS, texts)), "score": row[0], **label}
