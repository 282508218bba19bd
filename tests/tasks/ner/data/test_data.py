"""Reading named entity data of any format: the types, files, texts to predict, and the real files."""

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.ner.data.reading import entity_types, read_examples, read_texts
from tests.tasks.ner.reading import error_of, json_line

REPOSITORY = Path(__file__).resolve().parents[4]


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
    path = write(content)
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:1: ") and "empty" in message


@pytest.mark.parametrize("reader", [read_examples, read_texts])
def test_input_that_is_not_utf8_is_an_error_with_line_byte_and_the_command_to_convert_it(write, reader):
    path = write("甲 O\n乙 O\n".encode() + "丙 O\n".encode("gb18030"))
    message = error_of(reader, path)
    assert message.startswith(f"{path}:3: not UTF-8 (byte 12 ")
    assert "iconv -f gb18030 -t utf-8" in message
    assert "iconv -f utf-16 -t utf-8" in error_of(reader, write("甲 O\n".encode("utf-16")))


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

# file, examples, characters (None: its README has no count), entities, ill-formed places, longest text, types.
# The README of Resume counts 13,438 entities in train: two of them are cut in two by the end of a sentence (lines
# 62390 and 64412), and each half is an entity here.
REAL_FILES = [
    ("cluener/train.json", 10_748, None, 23_971, 0, 50, 10),
    ("cluener/dev.json", 1_343, None, 3_072, 0, 50, 10),
    ("resume/train.char.bmes", 3_821, 124_099, 13_438 + 2, 4, 178, 8),
    ("resume/dev.char.bmes", 463, 13_890, 1_497, 0, 178, 8),
    ("resume/test.char.bmes", 477, 15_100, 1_630, 0, 167, 8),
    ("peoples_daily/example.train", 20_864, 979_180, 33_992, 0, 574, 3),
    ("peoples_daily/example.dev", 2_318, 109_870, 3_819, 0, 568, 3),
    ("peoples_daily/example.test", 4_636, 219_197, 7_707, 0, 577, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, examples, characters, entities, ill_formed, longest, types", REAL_FILES)
def test_real_file_has_the_counts_of_its_readme(
    shared_data, caplog, name, examples, characters, entities, ill_formed, longest, types
):
    path = shared_data / "ner" / name
    if not path.is_file():
        pytest.skip(f"no {path}")
    read = read_examples(path)
    assert (len(read), sum(len(one.entities) for one in read)) == (examples, entities)
    assert characters in (None, sum(len(one.text) for one in read))
    assert (max(len(one.text) for one in read), len(entity_types(read))) == (longest, types)
    assert [f": {ill_formed} tag seq" in record.getMessage() for record in caplog.records] == [True] * bool(ill_formed)
    if name.startswith("cluener"):
        assert read_texts(path) == [(one.text, one.where) for one in read]
