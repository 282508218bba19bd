"""Reading named entity data of any format: the types, files, texts to predict, and the real files."""

import io
import os
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.ner.data.reading import Entity, Example, entity_types, read_examples, read_texts
from tests.tasks.ner.reading import assert_error, error_of, json_line, tagged

REPOSITORY = Path(__file__).resolve().parents[4]


def existing(rows):
    """The rows (file, ...) as parameters, skipped unless PADDLE_ROPE_DATA names the folder of their file."""
    folder = Path(os.environ.get("PADDLE_ROPE_DATA", "")) / "ner"
    skip = pytest.mark.skip(reason="not in the folder that PADDLE_ROPE_DATA names")
    return [
        pytest.param(folder / row[0], *row[1:], id=row[0], marks=() if (folder / row[0]).is_file() else skip)
        for row in rows
    ]


# ---- the types


def test_entities_sort_by_start_then_end_then_type():
    entities = [Entity(2, 3, "a"), Entity(0, 4, "a"), Entity(0, 2, "b"), Entity(0, 2, "a")]
    assert sorted(entities) == [Entity(0, 2, "a"), Entity(0, 2, "b"), Entity(0, 4, "a"), Entity(2, 3, "a")]


def test_examples_are_immutable_and_hashable():
    example = Example("中国", (Entity(0, 2, "LOC"),), "x:1")
    assert len({example, Example("中国", (Entity(0, 2, "LOC"),), "x:1")}) == 1
    with pytest.raises(FrozenInstanceError):
        example.text = "x"


def test_entity_types_are_the_sorted_distinct_types_of_all_lists():
    first = [Example("ab", (Entity(0, 1, "b"), Entity(1, 2, "a")), "x:1"), Example("c", (), "x:2")]
    second = [Example("ab", (Entity(0, 1, "c"), Entity(1, 2, "a")), "y:1")]
    assert entity_types(first, second) == ["a", "b", "c"]
    assert entity_types() == entity_types([]) == []


def test_readers_load_the_standard_library_only():
    program = "import sys; before = set(sys.modules); import tasks.ner.data.reading; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded <= {*sys.stdlib_module_names, "tasks", "paddle_rope", "_distutils_hack"}


# ---- files


@pytest.mark.parametrize("reader", [read_examples, read_texts])
def test_missing_file_and_directory_are_errors(tmp_path, reader):
    missing = tmp_path / "missing.txt"
    assert error_of(reader, missing) == f"{missing}: no such file; check the path"
    message = error_of(reader, str(tmp_path))
    assert message.startswith(f"{tmp_path}: is a directory") and message.endswith("; give the path of a file in it")
    assert "check the path" in error_of(reader, "")
    assert "check the path" in error_of(reader, "a\x00b")


@pytest.mark.parametrize(
    "name, command",
    [
        ("data/ner/weibo/weiboNER_2nd_conll.train", "paddle-rope download weibo"),
        ("x y/ner/cluener/dev.json", "paddle-rope download cluener --output 'x y'"),
        ("cluener", "paddle-rope download cluener"),
    ],
)
def test_missing_file_of_a_public_data_set_names_the_command_that_downloads_it(tmp_path, monkeypatch, name, command):
    monkeypatch.chdir(tmp_path)
    assert error_of(read_examples, name) == f"{name}: no such file; {command} downloads it"
    assert "download" not in error_of(read_examples, "data/ner/cluener/mine.json")


@pytest.mark.parametrize("content", ["", "\n", " \n\t\r\n", "\ufeff", "\ufeff\n"])
def test_labeled_file_without_content_is_an_error(write, content):
    assert_error(write(content), 1, "empty", "give labeled data")


@pytest.mark.parametrize("reader", [read_examples, read_texts])
def test_input_that_is_not_utf8_is_an_error_with_line_byte_and_the_command_to_convert_it(write, reader):
    path = write("甲 O\n乙 O\n".encode() + "丙 O\n".encode("gb18030"))
    message = error_of(reader, path)
    assert message.startswith(f"{path}:3: not UTF-8 (byte 12 ")
    assert "iconv -f gb18030 -t utf-8" in message
    assert "iconv -f utf-16 -t utf-8" in error_of(reader, write("甲 O\n".encode("utf-16")))


def test_path_may_be_a_string_or_a_path_object(write):
    path = write(tagged("甲/O"))
    assert read_examples(path) == read_examples(str(path))
    assert read_texts(path) == read_texts(str(path))


# ---- texts to predict


def texts(source):
    return [text for text, _ in read_texts(source)]


def test_plain_text_lines_are_kept_exactly_with_their_place(write):
    path = write(" 甲 乙\t\n\n\u3000\n𠮷\u2028👍\n  \n")
    expected = [" 甲 乙\t", "", "\u3000", "𠮷\u2028👍", "  "]
    assert read_texts(path) == [(text, f"{path}:{number}") for number, text in enumerate(expected, 1)]


@pytest.mark.parametrize(
    "content, expected",
    [
        ("甲\n", ["甲"]),
        ("甲", ["甲"]),
        ("甲\n\n", ["甲", ""]),
        ("\n", [""]),
        ("\n甲", ["", "甲"]),
        ("甲\r\n\r\n乙\r\n", ["甲", "", "乙"]),
        ("甲\r\r\n", ["甲\r"]),
        ("甲\n\r", ["甲", ""]),
        ("\ufeff甲\n", ["甲"]),
    ],
)
def test_plain_text_has_as_many_texts_as_lines(write, content, expected):
    assert texts(write(content)) == expected


@pytest.mark.parametrize("line", ["{", "{甲}", '"text"', "[1]", "[呵呵]", "[]"])
def test_first_line_that_is_no_json_makes_plain_text(write, line):
    assert texts(write(line + "\n" + json_line("乙"))) == [line, json_line("乙")[:-1]]


@pytest.mark.parametrize(
    "line, reason", [('{"txt": "甲"}', 'there is no "text"'), ('{"text": "甲"', "broken JSON"), ("{}", "there is no")]
)
def test_first_line_of_json_without_a_text_is_an_error(write, line, reason):
    path = write(line + "\n" + json_line("乙"))
    assert error_of(read_texts, path).startswith(f"{path}:1: {reason}")


def test_json_lines_give_their_text_and_ignore_labels_and_blank_lines(write):
    first = json_line("甲", {"t": "of any form"})
    path = write("\ufeff\n" + first + "\n" + json_line("", id=1) + json_line("丙\n")[:-1])
    assert read_texts(path) == [("甲", f"{path}:2"), ("", f"{path}:4"), ("丙\n", f"{path}:5")]


@pytest.mark.parametrize("line", ["乙", '{"text": 1}', '{"id": 1}', '{"text": "乙"', '{"text": "\\ud800"}'])
def test_later_json_line_without_a_string_text_is_an_error(write, line):
    path = write(json_line("甲") + "\n" + line + "\n")
    message = error_of(read_texts, path)
    assert message.startswith(f"{path}:3: ")
    assert re.search(r"; (every line of this file|give each line|write the character)", message)


def test_completely_empty_input_is_an_error(write):
    path = write("")
    assert error_of(read_texts, path) == (
        f"{path}:1: the input is empty; give plain text, one text a line, or JSON lines with a text"
    )


def test_dash_reads_utf8_from_standard_input_whatever_its_encoding(monkeypatch):
    def give(data):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="latin-1"))

    give("甲\r\n\n乙".encode())
    assert read_texts("-") == [("甲", "<stdin>:1"), ("", "<stdin>:2"), ("乙", "<stdin>:3")]
    give(json_line("丙").encode())
    assert read_texts("-") == [("丙", "<stdin>:1")]
    give(b"a\n" + "中\n".encode("gb18030"))
    message = error_of(read_texts, "-")
    assert message.startswith("<stdin>:2: not UTF-8") and "iconv" in message
    give(b"")
    assert error_of(read_texts, "-").startswith("<stdin>:1: the input is empty; give ")


def test_dash_reads_a_standard_input_that_has_no_bytes(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("甲\n乙\n"))
    assert texts("-") == ["甲", "乙"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(read=lambda: ""))
    assert "the input is empty; give" in error_of(read_texts, "-")
    monkeypatch.setattr("sys.stdin", None)
    assert "give the path of a file" in error_of(read_texts, "-")


# ---- the real files

# file, examples, characters (None: its README has no count), entities, ill-formed places, longest text.
# The README of Resume counts 13,438 entities in train: two of them are cut in two by the end of a sentence (lines
# 62390 and 64412), and each half is an entity here.
REAL_FILES = [
    ("cluener/train.json", 10_748, None, 23_971, 0, 50),
    ("cluener/dev.json", 1_343, None, 3_072, 0, 50),
    ("resume/train.char.bmes", 3_821, 124_099, 13_438 + 2, 4, 178),
    ("resume/dev.char.bmes", 463, 13_890, 1_497, 0, 178),
    ("resume/test.char.bmes", 477, 15_100, 1_630, 0, 167),
    ("peoples_daily/example.train", 20_864, 979_180, 33_992, 0, 574),
    ("peoples_daily/example.dev", 2_318, 109_870, 3_819, 0, 568),
    ("peoples_daily/example.test", 4_636, 219_197, 7_707, 0, 577),
]
REAL_TYPES = {
    "cluener": [
        "address",
        "book",
        "company",
        "game",
        "government",
        "movie",
        "name",
        "organization",
        "position",
        "scene",
    ],
    "resume": ["CONT", "EDU", "LOC", "NAME", "ORG", "PRO", "RACE", "TITLE"],
    "peoples_daily": ["LOC", "ORG", "PER"],
}


@pytest.mark.parametrize("path, examples, characters, entities, ill_formed, longest", existing(REAL_FILES))
def test_real_file_has_the_counts_of_its_readme(caplog, path, examples, characters, entities, ill_formed, longest):
    read = read_examples(path)
    assert len(read) == examples
    assert sum(len(example.entities) for example in read) == entities
    assert characters in (None, sum(len(example.text) for example in read))
    assert max(len(example.text) for example in read) == longest
    assert entity_types(read) == REAL_TYPES[path.parent.name]
    for example in read:
        assert list(example.entities) == sorted(set(example.entities))
        assert all(0 <= entity.start < entity.end <= len(example.text) for entity in example.entities)
    if ill_formed:
        (record,) = caplog.records
        assert f": {ill_formed} tag sequences are not well-formed" in record.getMessage()
    else:
        assert not caplog.records


@pytest.mark.parametrize("path, count", existing([("cluener/test.json", 1_345)]))
def test_real_unlabeled_file_gives_texts_but_no_examples(path, count):
    assert len(read_texts(path)) == count
    assert error_of(read_examples, path).startswith(f'{path}:1: no "label"')


@pytest.mark.parametrize("path", existing([("cluener/dev.json",)]))
def test_real_labeled_file_gives_the_same_texts_to_predict(path):
    assert read_texts(path) == [(example.text, example.where) for example in read_examples(path)]
