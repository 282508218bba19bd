"""CSV and TSV with a header."""

import csv
import io

import pytest

from tasks.common.errors import InputError
from tasks.common.texts import tables
from tasks.common.texts.tables import table_records


def read(content):
    return list(table_records(content.split("\n"), "x"))


def test_what_the_csv_module_writes_reads_back_the_same():
    texts = ["甲,乙", '他说"好"', "第一行\n第二行", " 空 格 ", "", "[a]", '"', "\t", "'"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([["text", "label"], *([text, "1"] for text in texts)])
    assert [row["text"] for _, row in read(stream.getvalue())] == texts
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
    texts = [text for text in texts if "\n" not in text and "\t" not in text]  # TSV has a row a line
    writer.writerows([["text", "label"], *([text, "1"] for text in texts if text != '"')])
    assert [row["text"] for _, row in read(stream.getvalue())] == [text for text in texts if text != '"']


def test_rows_have_the_line_with_which_they_begin():
    assert [where for where, _ in read('text,label\n"a\nb",1\n\nc,2\n')] == ["x:2", "x:5"]


def test_a_quote_in_tsv_is_a_character():
    assert read('text\tlabel\n"你好"\t"\n他说"好\t1') == [
        ("x:2", {"text": '"你好"', "label": '"'}),
        ("x:3", {"text": '他说"好', "label": "1"}),
    ]


def test_usual_names_of_columns_become_those_of_records():
    assert read("id,文本,标签\n7,甲,a") == [("x:2", {"id": "7", "text": "甲", "label": "a"})]
    assert read("q1,q2,score\na,b,1") == [("x:2", {"sentence1": "a", "sentence2": "b", "score": "1"})]


def test_a_header_is_quoted_as_its_rows_are():
    assert read('"a, b",text\n"c, d", e') == [("x:2", {"a, b": "c, d", "text": " e"})]
    assert tables.header_of('"id,text,label') is None  # a quote without an end
    assert tables.header_of("text,\rlabel") is None


def test_space_after_commas_is_left_out_if_the_header_has_it():
    assert read("text, label\na, 1") == [("x:2", {"text": "a", "label": "1"})]
    assert read("text,label\na, 1") == [("x:2", {"text": "a", "label": " 1"})]


@pytest.mark.parametrize(
    "content, message",
    [
        ("text,label\na\n", r"x:2: 1 values, but the header in line 1 has 2 \('text, label'\)"),
        ("text\na,b\n", "x:2: 2 values"),
        ('text,label\na,1\n"b,2\n', "x:3: broken CSV"),
        ('text,label\n"a"b,1\n', "x:2: broken CSV"),
        ("text,text\n", "x:1: column 'text' is there twice"),
        ("text\tlabel\na b\n", "x:2: 1 values"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content, message):
    with pytest.raises(InputError, match=message):
        read(content)


def test_a_quote_that_never_ends_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(tables, "MAX_FIELD_CHARACTERS", 1000)
    with pytest.raises(InputError, match="x:2: broken CSV .field larger"):
        read('text\n"' + "a\n" * 2000)
