"""What labeled files read as, and what each format writes: ``golden/`` has the cases; and long inputs.

A case has the content of a file (a dict: of a folder of brat; a list: of a JSON list with an item a line), and the
examples that are read with the relations of all, or the error. Messages are given by their place and words:
"PATH:LINE ... WORD ... WORD".
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from paddle_rope.tasks.ner.data.reading import read_examples, read_labeled, write_examples
from paddle_rope.tasks.ner.examples import Relation
from paddle_rope.tasks.ner.formats import FORMATS, FORMATS_OF_RELATIONS
from paddle_rope.tasks.ner.prediction.finding import PART_CHARACTERS, part_bounds
from tests.tasks.ner.conftest import error_of, example

GOLDEN = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in Path(__file__).parent.glob("golden/*.yaml")}
WRITTEN = GOLDEN.pop("written")
GROUPS = [
    pytest.param(group["cases"], id=f"{family}: {group['title']}")
    for family, groups in sorted(GOLDEN.items())
    for group in groups
]


def says(message, expected):
    place, *words = expected.split(" ... ")
    return message.startswith(place) and all(word in message for word in words)


def shortened(text, path):
    return text.replace(f"{path}:", "").replace(f"{path}/", "").strip()


@pytest.mark.parametrize("cases", GROUPS)
def test_a_file_reads_as_expected(write, caplog, cases):
    for number, case in enumerate(cases):
        print(case)  # pytest shows the one that fails
        content = case.get("content")
        if isinstance(content, dict):
            path = [write(text, f"{number}/{name}") for name, text in content.items()][0].parent
        else:
            items = ",\n".join(json.dumps(item, ensure_ascii=False) for item in case.get("list", ()))
            path = write(f"[\n{items}\n]" if content is None else content, "sample")
        caplog.clear()
        if "error" in case:
            message = shortened(error_of(read_examples, path, case.get("format"), case.get("fields")), path)
            assert says(message, case["error"]) and "; " in message, message
            continue
        examples, format = read_labeled(path, case.get("format"), fields=case.get("fields"))
        found = [[one.text, [list(span[:3]) for span in one.entities], shortened(one.where, path)] for one in examples]
        assert found == [[text, entities, str(where)] for text, entities, where in case["examples"]]
        assert [list(relation) for one in examples for relation in one.relations] == case.get("relations", [])
        assert format == case.get("recognized", case.get("format"))
        logged = [shortened(record.getMessage(), path) for record in caplog.records]
        assert len(logged) == len(case.get("log", ())) and all(map(says, logged, case.get("log", ()))), logged


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_has_not_changed(tmp_path, caplog, format):
    related = replace(example("王小明在京。", (0, 3, "PER"), (4, 5, "LOC")), relations=(Relation(1, 0, "有"),))
    examples, path = [related, example("没有")], tmp_path / "out"
    write_examples(examples, path, format)
    assert len(caplog.messages) == (format not in FORMATS_OF_RELATIONS)
    assert all(says(one, f"x:1: left out 1 relations ... {', '.join(FORMATS_OF_RELATIONS)}") for one in caplog.messages)
    files = {file.name: file for file in path.iterdir()} if path.is_dir() else {format: path}
    expected = WRITTEN[format] if path.is_dir() else {format: WRITTEN[format]}
    assert {name: file.read_text("utf-8") for name, file in files.items()} == expected


LINES = ["中 B-LOC", '"text"', "[1]", "null", "[" * 100_000, '{"a": 1' + "0" * 5000]
DEEP = [f'{{"text": "甲", "label": {"[" * depth}1{"]" * depth}}}' for depth in (900, 980, 1060)]
BLOATED = [json.dumps({"text": "甲\n" * 900, "label": {"t": {"乙\n" * 900: [[0, 1799]]}}})]


@pytest.mark.parametrize("line", [*LINES, *DEEP, *BLOATED], ids=range(10))
def test_a_wrong_line_among_others_is_refused_in_a_short_line(write, line):
    path = write(f'{{"text": "甲", "label": {{}}}}\n{line}\n')
    assert error_of(read_examples, path).startswith(f"{path}:2: ")


@pytest.mark.parametrize("gap, entities", [(200, 1), (201, 0)])
def test_pieces_of_brat_that_much_white_space_parts_are_no_entity(write, gap, entities):
    write("甲" + " " * gap + "乙", "docs/a.txt")
    folder = write(f"T1\tt 0 1;{gap + 1} {gap + 2}\t甲 乙\n", "docs/a.ann").parent
    assert len(read_examples(folder)[0].entities) == entities


LONG = "天" * 200_000


def of_label_studio(text, values):
    results = [{"type": "labels", "to_name": "text", "value": {"labels": ["a"], **value}} for value in values]
    return [{"data": {"text": text}, "annotations": [{"result": results}]}]


OFTEN = range(20_000)


@pytest.fixture
def read(write):
    return lambda record: read_examples(write(json.dumps(record), "data.json"))


def test_very_many_offsets_in_units_of_utf_16_are_read(read):
    values = [{"start": 2 * n + 2, "end": 2 * n + 4, "text": "😀"} for n in OFTEN]
    (example,) = read(of_label_studio("😀" * 200_000, values))
    assert {entity[:2] for entity in example.entities} == {(n + 1, n + 2) for n in OFTEN}


def test_a_long_surface_with_very_many_spans_is_refused_before_they_are_compared(read):
    pairs = [[start, start + 149_999] for start in OFTEN]
    message = error_of(read, {"text": LONG, "label": {"a": {"天" * 150_000: pairs}}})
    assert "more than 100 times the characters of the text" in message
    assert len(read({"text": LONG, "label": {"a": {"天" * 150_000: pairs[:9]}}})[0].entities) == 9


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
