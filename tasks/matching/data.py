"""Reading of pairs and triples, with validation, and the splits of a run. The content decides about the format:

- Tab-separated lines of two texts and a label, as in AFQMC, LCQMC, BQ and STS-B. Only tabs separate, and quotes have no
  meaning. A first line whose last column is a column name is a header and is left out.
- JSON lines, a JSON list, or a table with a header. Pairs are as in CLUE, ``{"sentence1": ..., "sentence2": ...,
  "label": "0"}``; triples as in CAIL2019-SCM, ``{"A": ..., "B": ..., "C": ...}``, with ``"label": "B"`` or ``"C"``, the
  candidate that is closer to A. In a file without labels it is B, as in the published data; B and C are then exchanged
  at random, always in the same way, so that the position of a candidate gives nothing away.

A label is 0, 1 or a grade, any finite number. Blank lines are left out.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.forms import Form, form_of, records
from paddle_rope.tasks.common.texts.json_records import json_text
from paddle_rope.tasks.common.texts.streams import TextStream
from paddle_rope.tasks.common.texts.text_files import BLANKS, first_non_blank, place, shown
from paddle_rope.tasks.common.training.data import LabeledData, hold_out, hold_out_dev, note_repeated, read_files, say
from paddle_rope.tasks.matching.arguments import BI_ENCODER, GRADES, PAIR_KEYS, PAIRS, TRIPLE_KEYS, TRIPLES

KINDS = {2: "pairs", 3: "triples"}
LABEL_KEYS = ("label", "score", "similarity", "grade", "is_duplicate")
HEADERS = {*LABEL_KEYS, "labels", "sentence2", "text2", "text_b", "query2", "question2", "q2"}  # of the last column
EXCHANGE_SEED = 0
FORMAT = 'give two texts and a label between tabs, or JSON lines with "sentence1" and "sentence2", or "A", "B" and "C"'


class Example(NamedTuple):
    """Two texts, or a text A and its candidates B and C."""

    texts: tuple
    label: float | None  # a pair: 0, 1 or a grade; a triple: 1 if the first candidate is closer, else 0; or unknown
    where: str  # "path:line"

    @property
    def text(self):
        """The first text."""
        return self.texts[0]


def task_of(examples):
    """The task that labeled examples are for, one of ``TASKS``."""
    if len(examples[0].texts) == 3:
        return TRIPLES
    return PAIRS if all(example.label in (0, 1) for example in examples) else GRADES


def read_lines(lines, name):
    """The examples of the lines of a file called ``name``, or of records in memory: all pairs or all triples."""
    parse, form = _Parser(name), _form_of(lines)
    if form is Form.PLAIN:
        numbered = enumerate(lines, 1)
        examples = [example for number, line in numbered for example in parse.of_line(line, place(name, number))]
    else:
        examples = [parse.of_record(record, where) for where, record in records(lines, name, form)]
    parse.check_found()
    unlabeled = [example for example in examples if example.label is None]
    if unlabeled and (len(unlabeled) < len(examples) or len(examples[0].texts) == 2):
        remedy = "label all examples (or no triple, where B is always the closer one), or use the file for prediction"
        raise InputError(f"{unlabeled[0].where}: there is no label; {remedy}")
    return _with_candidates_exchanged(examples) if unlabeled else examples


def _form_of(lines):
    """The form of lines. Plain lines have tabs between texts and label; a header above them is one more plain line."""
    form = form_of(lines)
    is_columns = form is Form.TABLE and first_non_blank(lines).count("\t") in (1, 2)
    return Form.PLAIN if is_columns or form is Form.TAGGED else form


class ExampleStream(TextStream):
    """(texts, "path:line") of pairs or triples to predict, in chunks (see :class:`TextStream`). Labels are optional and
    left out; candidates keep their order."""

    form_of = staticmethod(_form_of)

    def __init__(self, source, chunk_items=2048):
        super().__init__(source, chunk_items)
        self._parse = _Parser(self.name)

    def items_of(self, line, where):
        if self.form is Form.JSON_LINES:
            return super().items_of(line, where)
        return [(example.texts, where) for example in self._parse.of_line(line, where)]

    def items_of_record(self, record, where):
        return [(self._parse.of_record(record, where).texts, where)]

    def check_end(self):
        self._parse.check_found()


class _Parser:
    """Makes examples of the lines, with tabs between texts and label, or of the records of a file called ``name``, one
    after the other. The first one tells whether they are pairs or triples."""

    def __init__(self, name):
        self.name = name
        self.is_begun = False
        self.keys = None  # until the first example

    def of_line(self, line, where):
        """A list of at most one :class:`Example`."""
        if not line.strip(BLANKS):
            return []
        columns, is_first, self.is_begun = line.split("\t"), not self.is_begun, True
        if is_first and columns[-1].strip().lower() in HEADERS:
            return []
        if len(columns) not in (2, 3):
            raise InputError(f"{where}: {len(columns)} columns, {shown(line)}; {FORMAT}")
        return [self.of_record(dict(zip((*PAIR_KEYS, "label"), columns)), where)]

    def of_record(self, record, where):
        """The :class:`Example` of a record of JSON, or of a table."""
        if self.keys is None:
            self.keys = TRIPLE_KEYS if TRIPLE_KEYS[0] in record else PAIR_KEYS
        texts = tuple(json_text(record, where, (key,)) for key in self.keys)
        for number, text in enumerate(texts, 1):
            if not text.strip():
                raise InputError(f"{where}: text {number} of {len(texts)} is empty; remove the line or give it a text")
        given = {key.lower(): value for key, value in record.items()}
        label = next((given[key] for key in LABEL_KEYS if given.get(key) not in (None, "")), None)
        if label is not None and self.keys is PAIR_KEYS:
            label = _number(label, where)
        elif label is not None:
            if label not in ("B", "C"):
                raise InputError(f'{where}: label {shown(label)}; name the text that is closer to A, "B" or "C"')
            label = float(label == "B")
        return Example(texts, label, where)

    def check_found(self):
        """Raise InputError if there was no example."""
        if self.keys is None:
            what = "there is only a header in it" if self.is_begun else "there is no text in it"
            raise InputError(f"{self.name}:1: {what}; {FORMAT}")


def _number(value, where):
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: label {shown(value)} is not a number; write 0, 1 or a grade such as 3.5")
    return number


def _with_candidates_exchanged(examples):
    """Triples without labels, B and C of a random half of them exchanged."""
    is_exchanged = np.random.RandomState(EXCHANGE_SEED).rand(len(examples)) < 0.5
    return [
        Example((a, c, b), 0.0, where) if exchanged else Example((a, b, c), 1.0, where)
        for ((a, b, c), _, where), exchanged in zip(examples, is_exchanged)
    ]


LABELED = LabeledData(read_lines)


def prediction_records(tuples, scores, threshold=None):
    """Scored texts of pairs or triples in the form of labeled data: ``scores`` are ``[examples, candidates]``. A
    pair has label 1 if its score is at least ``threshold``, else 0; without a threshold it has no label."""
    for texts, row in zip(tuples, scores.tolist()):
        if len(texts) == 3:
            yield {**dict(zip(TRIPLE_KEYS, texts)), "scores": row, "label": "B" if row[0] > row[1] else "C"}
        else:
            label = {} if threshold is None else {"label": int(row[0] >= threshold)}
            yield {**dict(zip(PAIR_KEYS, texts)), "score": row[0], **label}


# ---- the splits of a run


def read_splits(keys, seed, memory=None):
    """The examples of a run by split: ``train`` and, if there are any, ``dev`` and ``test``; the seed draws the folds.
    Raises InputError if a file is wrong, the files do not go together, or there is nothing to learn in one."""
    splits, names = read_files(keys, LABELED.read_file, memory)
    note_repeated(splits, names, lambda example: (example.texts, example.label))
    if keys.folds and keys.fold is None:
        raise InputError("configuration: folds without fold; one run is tested on one fold, `train` runs them all")
    if keys.fold is not None:
        splits["train"], splits["test"] = cut_fold(splits["train"], keys.folds, keys.fold, seed)
        names["test"] = f"fold {keys.fold} of {names['train']}"
    hold_out_dev(keys, splits, names, lambda example: [example.label], cut=hold_out_connected)
    first, task = splits["train"][0], task_of(splits["train"])
    if keys.architecture == BI_ENCODER and task == PAIRS and "dev" not in splits:
        raise InputError("configuration: dev data choose the threshold of a bi_encoder of pairs; give a dev_fraction")
    for split, (other, *_) in splits.items():
        if len(other.texts) != len(first.texts):
            here, there = KINDS[len(other.texts)], KINDS[len(first.texts)]
            raise InputError(f"{other.where}: {here}, but {first.where} has {there}; give one kind")
        labels = {example.label: example.where for example in reversed(splits[split])}
        for label in labels.keys() - {0, 1} if task == PAIRS else ():
            raise InputError(f"{labels[label]}: label {label:g}, but the training data have only 0 and 1")
        if task != TRIPLES and len(labels) == 1:
            raise InputError(
                f"{names[split]}: all labels are {other.label:g}; give data with different labels, which can be told "
                "apart"
            )
    return splits


def components_of(examples):
    """dict from the first text of each example to a text that names its component: the examples that are connected with
    it because they share texts, directly or through other examples."""
    parents = {}

    def root(text):
        while (above := parents.setdefault(text, text)) != text:
            parents[text] = text = parents[above]
        return text

    for example in examples:
        for other in example.texts[1:]:
            first, second = sorted((root(example.text), root(other)))
            parents[second] = first
    return {example.text: root(example.text) for example in examples}


def hold_out_connected(examples, fraction, way, labels_of):
    """``hold_out`` by components, so that ``held`` shares no text with ``rest``. If components larger than ``held``
    leave less than half of it, only examples with the same first text stay together. Prints which it is."""
    components, (rest, held) = components_of(examples), (examples, [])
    if len({*components.values()}) > 1:
        rest, held = hold_out(examples, fraction, way, labels_of, lambda example: components[example.text])
    is_cut = not rest or len(held) < fraction * len(examples) / 2
    if is_cut:
        rest, held = hold_out(examples, fraction, way, labels_of)
    _tell("dev", rest, held, components, is_cut)
    return rest, held


def cut_fold(examples, folds, fold, seed):
    """(rest, part) of labeled data, lists in the original order: ``part`` is tested in fold number ``fold``, from 1, of
    ``folds`` folds of about equal size, drawn with the seed. Components are in the same part; if one is larger than a
    fold, only examples with the same first text are. Prints which it is. Raises InputError if there are fewer different
    first texts than folds."""
    components = components_of(examples)
    counts = Counter(components[example.text] for example in examples)
    is_cut = max(counts.values()) * folds > len(examples)
    group_of = {text: text for text in components} if is_cut else components
    counts = Counter(group_of[example.text] for example in examples)
    if len(counts) < folds:
        raise InputError(f"{examples[0].where}: {len(counts)} different first texts do not make {folds} folds")
    groups, sizes, chosen = list(counts), [0] * folds, set()
    for index in np.random.RandomState(seed).permutation(len(groups)):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += counts[groups[index]]
        if smallest == fold - 1:
            chosen.add(groups[index])
    rest, part = ([e for e in examples if (group_of[e.text] in chosen) == is_in] for is_in in (False, True))
    _tell(f"fold {fold}", rest, part, components, is_cut)
    return rest, part


def _tell(name, rest, part, components, is_cut):
    """Print how a part of the data was held out, and how much of it is new."""
    sizes = Counter(components[example.text] for example in (*rest, *part))
    known = {text for example in rest for text in example.texts}
    new = sum(known.isdisjoint(example.texts) for example in part) / len(part)
    kind, largest = KINDS[len(part[0].texts)], max(sizes.values())
    way, stays = ("first", "") if is_cut else ("connected", ", which stays in train" * (largest > len(part)))
    line = (
        f"{name} is held out by {way} texts (components of {kind} that share texts: {len(sizes):,}, the largest of "
        f"{largest:,}{stays}); {new:.1%} of {name} share no text with train"
    )
    say(f"note: {line}, so its scores are too high" if is_cut else line)
