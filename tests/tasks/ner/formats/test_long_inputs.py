"""Long inputs are read in the time of their length: what compared or searched all for each part would take minutes."""

import itertools
import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.data.reading import read_examples
from tasks.ner.prediction.parts import PART_CHARACTERS, part_bounds


@pytest.fixture
def read(tmp_path):
    def read(record):
        path = tmp_path / "data.json"
        path.write_text(record if isinstance(record, str) else json.dumps(record), encoding="utf-8")
        return read_examples(path)

    return read


@pytest.mark.parametrize("starts", [[0] * 20_000, range(20_000)], ids=["one span", "spans that overlap"])
def test_spans_of_a_long_surface_in_cluener(read, starts):
    text, size = "天" * 200_000, 150_000
    pairs = [[start, start + size - 1] for start in starts]
    (example,) = read({"text": text, "label": {"a": {text[:size]: pairs}}})
    assert len(example.entities) == len(set(starts))


def test_a_wrong_span_among_those_that_overlap_is_found(read):
    text = "天" * 50 + "地" + "天" * 50
    pairs = [[start, start + 29] for start in range(21)]
    assert len(read({"text": text, "label": {"a": {"天" * 30: pairs}}})[0].entities) == 21
    with pytest.raises(InputError, match=r"span \[21, 50\] holds '天天.*地', but the label says"):
        read({"text": text, "label": {"a": {"天" * 30: [*pairs, [21, 50]]}}})
    with pytest.raises(InputError, match=r"span \[1, 30\] holds"):  # not its own continuation after one character
        read({"text": "天" * 40, "label": {"a": {"天" * 29: [[0, 28], [1, 30]]}}})


def test_entities_of_a_whole_text_without_their_surfaces(read):
    text = "天" * 500_000
    entities = [{"start": 0, "end": len(text), "type": str(number)} for number in range(20_000)]
    assert len(read({"text": text, "entities": entities})[0].entities) == len(entities)


def label_studio(text, values):
    results = [{"type": "labels", "to_name": "text", "value": {"labels": ["a"], **value}} for value in values]
    return [{"data": {"text": text}, "annotations": [{"result": results}]}]


def test_spans_of_a_long_text_counted_in_utf16(read):
    text = "😀" * 200_000
    values = [{"start": 2 * place + 2, "end": 2 * place + 4, "text": "😀"} for place in range(150_000, 170_000)]
    (example,) = read(label_studio(text, values))
    assert [entity[:2] for entity in example.entities] == [(place + 1, place + 2) for place in range(150_000, 170_000)]


def test_spans_that_hold_much_more_white_space_than_their_surface_are_refused(read):
    text = " " * 400_000 + "天"
    values = [{"start": place, "end": len(text), "text": "天"} for place in (*range(399_000, 400_000), *range(10_000))]
    with pytest.raises(InputError, match=r"span \[0, 400001\] holds"):
        read(label_studio(text, values))


@pytest.mark.parametrize("text", ["a\\nb", "\\n", "a\\n\\nb c"])
def test_white_space_and_written_line_breaks_are_left_out_of_every_span(read, text):
    for start, end in itertools.combinations(range(len(text) + 1), 2):
        surface = "".join(text[start:end].replace("\\n", "").split())
        (example,) = read(label_studio(text, [{"start": start, "end": end, "text": surface}]))
        assert example.entities[0][:2] == (start, end)
        with pytest.raises(InputError, match="but its text is"):
            read(label_studio(text, [{"start": start, "end": end, "text": f"{surface}x"}]))


@pytest.mark.parametrize("run", ["\n", " ", "!", "!" + ")" * 10, ", "])
def test_white_space_before_a_mark_is_searched_once(run):
    text = (run * 8000 + "\u0301") * 25
    bounds = list(part_bounds(text, PART_CHARACTERS))
    assert [start for start, _ in bounds[1:]] == [end for _, end in bounds[:-1]]
    assert (bounds[0][0], bounds[-1][1]) == (0, len(text))
