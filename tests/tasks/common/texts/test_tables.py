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
    one_a_line = [text for text in texts if "\n" not in text and "\t" not in text and text != '"']  # as in TSV
    for delimiter, given in ((",", texts), ("\t", one_a_line)):
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerows([["text", "label"], *([text, "1"] for text in given)])
        assert [row["text"] for _, row in read(stream.getvalue())] == given


@pytest.mark.parametrize(
    "content, records",
    [
        ('text,label\n"a\nb",1\n\nc,2\n', [(2, {"text": "a\nb", "label": "1"}), (5, {"text": "c", "label": "2"})]),
        (
            'text\tlabel\n"你好"\t"\n他说"好\t1',  # a quote in TSV is a character
            [(2, {"text": '"你好"', "label": '"'}), (3, {"text": '他说"好', "label": "1"})],
        ),
        ("id,文本,标签\n7,甲,a", [(2, {"id": "7", "text": "甲", "label": "a"})]),  # usual names of columns
        ("q1,q2,score\na,b,1", [(2, {"sentence1": "a", "sentence2": "b", "score": "1"})]),
        ('"a, b",text\n"c, d", e', [(2, {"a, b": "c, d", "text": " e"})]),  # a header is quoted as its rows are
        ("text, label\na, 1", [(2, {"text": "a", "label": "1"})]),  # space is left out if the header has it
        ("text,label\na, 1", [(2, {"text": "a", "label": " 1"})]),
    ],
)
def test_rows_are_records_with_the_line_with_which_they_begin(content, records):
    assert read(content) == [(f"x:{line}", record) for line, record in records]


def test_a_quote_that_never_ends_is_found_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(tables, "MAX_FIELD_CHARACTERS", 1000)
    with pytest.raises(InputError, match="x:2: broken CSV .field larger"):  # more: tests/tasks/refused_files.yaml
        read('text\n"' + "a\n" * 2000)
