"""Reading pairs and triples: formats, what is refused and where, and that B and C are exchanged."""

import json
from itertools import chain

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.matching.data import ExampleStream, prediction_records, read_labeled
from tasks.matching.examples import Example, task_of


@pytest.fixture
def write(tmp_path):
    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.fixture
def refused(write):
    """The message of a file's content that is refused, without the folder."""

    def refused(content, read=read_labeled):
        path = write(content)
        with pytest.raises(InputError) as error:
            read(path)
        return str(error.value).replace(f"{path.parent}/", "")

    return refused


def parts(examples):
    return [(*example.texts, example.label) for example in examples]


# ---- formats

PAIRS = [("天气好吗", "今天天气如何", 1.0), ('a, "b"', " 空格 ", 0.0)]


@pytest.mark.parametrize(
    "content",
    [
        '天气好吗\t今天天气如何\t1\na, "b"\t 空格 \t0\n',
        '\ufeff天气好吗\t今天天气如何\t1\r\n\r\na, "b"\t 空格 \t0',
        'text_a\ttext_b\tlabel\n天气好吗\t今天天气如何\t1\na, "b"\t 空格 \t0\n',
        'sentence1\tsentence2\tScore\n天气好吗\t今天天气如何\t1.0\na, "b"\t 空格 \t 0 \n',
        '{"sentence1": "天气好吗", "sentence2": "今天天气如何", "label": "1"}\n'
        '{"sentence1": "a, \\"b\\"", "sentence2": " 空格 ", "label": 0, "id": 7}\n',
        '\n{"sentence1": "天气好吗", "sentence2": "今天天气如何", "score": 1}\n'
        '{"sentence1": "a, \\"b\\"", "sentence2": " 空格 ", "label": null, "score": 0.0}\n',
        '[{"sentence1": "天气好吗", "sentence2": "今天天气如何", "label": "1"},\n'
        '{"sentence1": "a, \\"b\\"", "sentence2": " 空格 ", "label": 0}]',
        'sentence1,sentence2,label\n天气好吗,今天天气如何,1\n"a, ""b""", 空格 ,0\n',
        'id,Q1,Q2,Score\n7,天气好吗,今天天气如何,1.0\n8,"a, ""b""", 空格 ,0\n',
        'id\ttext1\ttext2\tlabel\n7\t天气好吗\t今天天气如何\t1\n8\ta, "b"\t 空格 \t0\n',
    ],
    ids=[
        *("tabs", "mark and line ends", "header", "header of grades", "json lines", "json score"),
        *("json list", "csv", "csv of grades", "more columns"),
    ],
)
def test_formats_of_pairs_give_the_same_examples(write, content):
    examples = read_labeled(write(content))
    assert parts(examples) == PAIRS
    assert task_of(examples) == "pairs"


@pytest.mark.parametrize(
    "content",
    ['[{"A": "甲", "B": "乙", "C": "丙"},\n {"A": "丁", "B": "戊", "C": "己"}]', "A,B,C\n甲,乙,丙\n丁,戊,己\n"],
)
def test_lists_and_tables_hold_triples_too(write, content):
    path = write(content)
    found = [example.texts for chunk in ExampleStream(path) for example in chunk]
    assert found == [("甲", "乙", "丙"), ("丁", "戊", "己")]
    assert {frozenset(example.texts) for example in read_labeled(path)} == set(map(frozenset, found))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,label\na,b\n", "file:2: 2 values, but the header in line 1 has 3"),
        ("sentence1,sentence2\na,b\n", "file:2: there is no label"),
        ('[{"sentence1": "a", "label": 1}]', 'file:1: there is no "sentence2"'),
        ("sentence1,sentence2,label\n", "file:1: there is no text in it"),
    ],
)
def test_what_is_wrong_in_lists_and_tables_has_its_line(refused, content, message):
    assert refused(content).startswith(message)


def test_tabs_between_the_keys_of_json_are_no_columns(write):
    path = write('{"sentence1": "甲",\t"sentence2": "乙",\t"label": "1"}\n')
    assert parts(read_labeled(path)) == [("甲", "乙", 1.0)]
    path = write("{甲\t乙\t1\n")
    assert parts(read_labeled(path)) == [("{甲", "乙", 1.0)]


def test_place_of_an_example_counts_headers_and_blank_lines(write):
    path = write("q1\tq2\tlabel\n\nx\ty\t1\n")
    assert read_labeled(path)[0].where == f"{path}:3"


def test_a_header_is_only_looked_for_in_the_first_line(refused):
    assert refused("x\ty\t1\na\tb\tlabel\n").startswith("file:2: label 'label' is not a number")


@pytest.mark.parametrize("label, task", [("3.8", "grades"), ("2", "grades"), ("-1", "grades"), ("1.0", "pairs")])
def test_labels_other_than_0_and_1_are_grades(write, label, task):
    examples = read_labeled(write(f"x\ty\t{label}\nx\tz\t0\n"))
    assert examples[0].label == float(label)
    assert task_of(examples) == task


def test_unlabeled_pairs_may_have_two_columns_and_labels_are_left_out(write):
    examples = list(chain.from_iterable(ExampleStream(write("sentence1\tsentence2\nx\ty\nv\tw\t1\n"))))
    assert parts(examples) == [("x", "y", None), ("v", "w", None)]


# ---- triples

TRIPLE = '{{"A": "甲", "B": "乙{0}", "C": "丙{0}"{1}}}\n'


def test_unlabeled_triples_have_b_as_the_closer_one_and_are_exchanged_at_random(write):
    path = write("".join(TRIPLE.format(number, "") for number in range(400)))
    examples = read_labeled(path)
    assert task_of(examples) == "triples"
    for number, (anchor, first, second, label) in enumerate(parts(examples)):
        assert anchor == "甲"
        assert (first, second) == ((f"乙{number}", f"丙{number}") if label == 1 else (f"丙{number}", f"乙{number}"))
    labels = [example.label for example in examples]
    assert 150 < sum(labels) < 250
    assert labels != sorted(labels)
    assert read_labeled(path) == examples
    in_order = list(chain.from_iterable(ExampleStream(path)))
    assert [example.texts[1] for example in in_order] == [f"乙{number}" for number in range(400)]


def test_labels_of_triples_are_heeded_and_nothing_is_exchanged(write):
    lines = [TRIPLE.format(number, f', "label": "{"BC"[number % 3 == 0]}"') for number in range(60)]
    for number, example in enumerate(read_labeled(write("".join(lines)))):
        assert example.texts == ("甲", f"乙{number}", f"丙{number}")
        assert example.label == (0 if number % 3 == 0 else 1)


# ---- what is refused


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "file:1: there is no text in it"),
        ("\n \n", "file:1: there is no text in it"),
        ("text1\ttext2\tlabel\n", "file:1: there is only a header in it"),
        ("x\ty\t1\nx\ty\n", "file:2: there is no label"),
        ("x\ty\t1\nx y 1\n", "file:2: 1 columns, 'x y 1'"),
        ("x\ty\tz\t1\n", "file:1: 4 columns"),
        ("x\ty\t1\n\t y\t1\n", "file:2: text 1 of 2 is empty"),
        ("x\t \t1\n", "file:1: text 2 of 2 is empty"),
        ("x\ty\tja\n", "file:1: label 'ja' is not a number; write 0, 1 or a grade"),
        ("x\ty\tnan\n", "file:1: label 'nan' is not a number"),
        ("x\ty\tinf\n", "file:1: label 'inf' is not a number"),
        ("x\ty\t\n", "file:1: label '' is not a number"),
        (b"x\ty\t1\nx\t\xff\t0\n", "file:2: not UTF-8"),
        ('{"sentence1": "x", "sentence2": "y", "label": true}\n', "file:1: label True is not a number"),
        ('{"sentence1": "x", "sentence2": "y", "label": [1]}\n', "file:1: label [1] is not a number"),
        ('{"sentence1": "x", "sentence2": "y"}\n', "file:1: there is no label"),
        ('{"sentence1": "x", "label": 1}\n', 'file:1: there is no "sentence2"'),
        ('{"sentence1": "x", "sentence2": 3, "label": 1}\n', 'file:1: "sentence2" is 3, not a string'),
        ('{"sentence1": "x", "sentence2": "y", "label": 1}\n{"sentence1": \n', "file:2: broken JSON"),
        ('{"sentence1": "\\ud800", "sentence2": "y", "label": 1}\n', 'file:1: "sentence1" holds half of a surrogate'),
        ('{"A": "x", "B": "y"}\n', 'file:1: there is no "C"'),
        ('{"A": "x", "B": "y", "C": " "}\n', "file:1: text 3 of 3 is empty"),
        ('{"A": "x", "B": "y", "C": "z", "label": 1}\n', "file:1: label 1; name the text that is closer"),
        ('{"A": "x", "B": "y", "C": "z", "label": ["B"]}\n', "file:1: label ['B']; name the text"),
        (
            '{"A": "x", "B": "y", "C": "z", "label": "B"}\n{"A": "x", "B": "y", "C": "z"}\n',
            "file:2: there is no label here, but one in file:1",
        ),
        (
            '{"A": "x", "B": "y", "C": "z"}\n{"A": "x", "B": "y", "C": "z", "label": "C"}\n',
            "file:2: there is a label here, but none in file:1",
        ),
    ],
)
def test_wrong_lines_are_named_with_their_place(refused, content, message):
    assert refused(content).startswith(message)


def test_missing_file_is_an_input_error():
    with pytest.raises(InputError, match="missing: no such file"):
        read_labeled("missing")


# ---- predictions


def test_predictions_of_pairs_and_triples_are_labeled_data_in_turn(write, tmp_path):
    pairs = [("x", "y"), ("v", "w")]
    records = list(prediction_records(pairs, np.array([[0.5], [0.25]]), threshold=0.5))
    assert records[0] == {"sentence1": "x", "sentence2": "y", "score": 0.5, "label": 1}
    path = write("".join(json.dumps(record) + "\n" for record in records))
    assert parts(read_labeled(path)) == [("x", "y", 1), ("v", "w", 0)]
    assert "label" not in next(prediction_records(pairs, np.array([[0.5], [0.25]])))
    triples = [("a", "b", "c"), ("d", "e", "f")]
    records = list(prediction_records(triples, np.array([[0.5, 0.75], [1.0, -1.0]])))
    assert records[0] == {"A": "a", "B": "b", "C": "c", "scores": [0.5, 0.75], "label": "C"}
    path = write("".join(json.dumps(record) + "\n" for record in records))
    assert read_labeled(path) == [
        Example(("a", "b", "c"), 0.0, f"{path}:1"),
        Example(("d", "e", "f"), 1.0, f"{path}:2"),
    ]


# ---- real data, where they are


def test_published_files_are_read_whole(shared_data):
    """Counts as in the data's READMEs; nothing is checked where the data are not."""
    afqmc, scm = shared_data / "matching/afqmc/dev.txt", shared_data / "matching/cail2019_scm/input.txt"
    if afqmc.is_file():
        labels = [example.label for example in read_labeled(afqmc)]
        assert (labels.count(0), labels.count(1)) == (2978, 1338)
        assert len(list(chain.from_iterable(ExampleStream(afqmc.with_name("test.txt"))))) == 3861
    if scm.is_file():
        examples = read_labeled(scm)
        assert len(examples) == 500 and len({example.text for example in examples}) == 210


@pytest.mark.parametrize("label", ["1" + "0" * 400, f'"1{"0" * 400}"', "1e400"])
def test_labels_beyond_all_numbers_are_named_with_their_place(refused, label):
    message = refused(f'{{"sentence1": "甲", "sentence2": "乙", "label": {label}}}')
    assert message.startswith("file:1: label ") and "is not a number; write 0, 1 or a grade" in message
    assert len(message) < 200
