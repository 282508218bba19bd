"""Long inputs are read in the time of their length: what compared or searched all for each part would take minutes."""

import itertools
import json

import pytest

from tasks.ner.data.inspection import overlapping_pairs
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity
from tasks.ner.prediction.windows import PART_CHARACTERS, part_bounds
from tests.tasks.ner.conftest import error_of

LONG, SMILES = "天" * 200_000, "😀" * 200_000


def of_label_studio(text, values):
    results = [{"type": "labels", "to_name": "text", "value": {"labels": ["a"], **value}} for value in values]
    return [{"data": {"text": text}, "annotations": [{"result": results}]}]


SURFACE, OFTEN = LONG[:150_000], range(20_000)
RECORDS = {  # a record, and the spans in it
    "one span often": ({"text": LONG, "label": {"a": {SURFACE: [[0, 149_999]] * len(OFTEN)}}}, {(0, 150_000)}),
    "spans of a long surface that overlap": (
        {"text": LONG, "label": {"a": {SURFACE: [[n, n + 149_999] for n in OFTEN]}}},
        {(n, n + 150_000) for n in OFTEN},
    ),
    "whole texts without surfaces": (
        {"text": LONG, "entities": [{"start": 0, "end": len(LONG), "type": str(n)} for n in OFTEN]},
        {(0, len(LONG))},
    ),
    "offsets in units of UTF-16": (
        of_label_studio(SMILES, [{"start": 2 * n + 2, "end": 2 * n + 4, "text": "😀"} for n in OFTEN]),
        {(n + 1, n + 2) for n in OFTEN},
    ),
}


@pytest.fixture
def read(write):
    return lambda record: read_examples(write(json.dumps(record), "data.json"))


@pytest.mark.parametrize("record, spans", RECORDS.values(), ids=RECORDS)
def test_many_spans_of_a_long_text(read, record, spans):
    (example,) = read(record)
    assert {entity[:2] for entity in example.entities} == spans


def test_a_wrong_span_among_those_that_overlap_is_found(read):
    text, pairs = "天" * 50 + "地" + "天" * 50, [[start, start + 29] for start in range(21)]
    assert len(read({"text": text, "label": {"a": {"天" * 30: pairs}}})[0].entities) == 21
    assert "[21, 50]" in error_of(read, {"text": text, "label": {"a": {"天" * 30: [*pairs, [21, 50]]}}})
    # not its own continuation after one character
    assert "[1, 30]" in error_of(read, {"text": "天" * 40, "label": {"a": {"天" * 29: [[0, 28], [1, 30]]}}})


def test_spans_that_hold_much_more_white_space_than_their_surface_are_refused(read):
    text = " " * 400_000 + "天"
    values = [{"start": place, "end": len(text), "text": "天"} for place in (*range(399_000, 400_000), *range(10_000))]
    assert "span [0, 400001] holds" in error_of(read, of_label_studio(text, values))


@pytest.mark.parametrize("text", ["a\\nb", "\\n", "a\\n\\nb c"])
def test_white_space_and_written_line_breaks_are_left_out_of_every_span(read, text):
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        surface = "".join(text[start:end].replace("\\n", "").split())
        (example,) = read(of_label_studio(text, [{"start": start, "end": end, "text": surface}]))
        assert example.entities[0][:2] == (start, end)
        wrong = of_label_studio(text, [{"start": start, "end": end, "text": f"{surface}x"}])
        assert "but its text is" in error_of(read, wrong)


@pytest.mark.parametrize("run", ["\n", " ", "!", "!" + ")" * 10, ", "])
def test_white_space_before_a_mark_is_searched_once(run):
    text = (run * 8000 + "\u0301") * 25
    assert list(part_bounds(text, PART_CHARACTERS))[-1][1] == len(text)


@pytest.mark.parametrize("span", [lambda i, n: (i, i + n), lambda i, n: (i, 2 * n - i), lambda i, n: (0, 1 + i)])
def test_entities_that_all_overlap_are_not_compared_pair_by_pair(span):
    nested, crossing = overlapping_pairs([Entity(*span(place, 20_000), "a") for place in range(20_000)])
    assert len(nested) + len(crossing) == 19_999
