"""The contract of every format: what is written reads back the same, what it cannot hold is refused in a line."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paddle_rope.tasks.ner.data.reading import read_examples, read_labeled, write_examples
from paddle_rope.tasks.ner.examples import Entity, Relation
from paddle_rope.tasks.ner.formats import FORMATS, FORMATS_OF_RELATIONS
from paddle_rope.tasks.ner.formats.label_studio import labeling_configuration
from tests.conftest import REPOSITORY
from tests.tasks.ner.conftest import contents, error_of, example, read_texts

TAGS = [format for format in FORMATS if format.startswith(("bio", "bmes"))]
FLAT_ONLY = [*TAGS, "tokens"]
LONG = "很长的文本，" * 3000
FLAT = [
    example("王明在北京", (0, 2, "PER"), (3, 5, "LOC")),
    example("北京上海广州", (0, 2, "LOC"), (2, 4, "LOC"), (4, 5, "LOC"), (5, 6, "LOC")),
    example("没有实体。"),
    example("我爱👍🏽𠮷野家！", (4, 7, "公司"), (2, 4, "表情")),
    example("New York 的 Mr. Smith 先生", (0, 8, "LOC"), (11, 20, "PER")),
    example("{“a”：[1]}", (0, 1, "t"), (8, 9, "t")),
    example("[中]", (1, 2, "a-b")),
    example(" \u3000\u00a0前后\u2028都有空白\u0085 ", (0, 1, "空"), (3, 5, "B-I")),
    example("\ufeff字节顺序标记\x00\x1f\r里", (0, 1, "t"), (7, 8, "控制"), (9, 11, "t")),
    example("O", (0, 1, "O")),
    example("B-LOC I-LOC", (0, 5, "LOC")),
    example(LONG, (0, len(LONG), "whole")),
]
DEEP = [
    example("北京大学校长", (0, 2, "LOC"), (0, 2, "GPE"), (0, 4, "ORG"), (2, 5, "x"), (0, 6, "PER"), (5, 6, "x")),
    example("第一行\n第二行\r\n\n末行\n", (2, 5, "跨行"), (0, 12, "all"), (7, 10, "t")),
    example("制表\t符", (1, 4, "t"), (2, 3, "t")),
    example("联合\x02符", (1, 4, "t")),
    example('引号"和\\反斜杠', (2, 5, "t")),
]
RELATED = [
    replace(
        example("王明和李红在北京", (0, 2, "PER"), (0, 5, "x"), (3, 5, "PER"), (6, 8, "LOC")),
        relations=(Relation(0, 2, "配偶"), Relation(0, 3, "at"), Relation(2, 0, "配偶"), Relation(3, 3, "at")),
    ),
    replace(example("甲乙", (0, 1, "a"), (0, 1, "b")), relations=(Relation(1, 0, "same"),)),
]


def held(format):
    related = RELATED if format in FORMATS_OF_RELATIONS else []
    return FLAT if format in FLAT_ONLY else FLAT + DEEP + related


def all_of(examples):
    return [(one.text, one.entities, one.relations) for one in examples]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_reads_back_the_same_named_and_recognized(tmp_path, caplog, format):
    write_examples(held(format), tmp_path / "all", format)
    if format != "brat":  # which is a folder
        write_examples(held(format), stream := io.StringIO(), format)
        assert stream.getvalue().encode("utf-8") == (tmp_path / "all").read_bytes()
    for name in (format, None):
        again, found = read_labeled(tmp_path / "all", name)
        assert all_of(again) == all_of(held(format)) and found == format
    for number, one in enumerate(held(format)):
        write_examples([one], tmp_path / str(number), format)
        assert all_of(read_examples(tmp_path / str(number), format)) == all_of([one])
    assert not caplog.records


def as_table(records, delimiter):
    stream = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(stream, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in record.items()})
    return stream.getvalue()


@pytest.mark.parametrize(
    "format", ["cluener", "doccano", "doccano_entities", "cmeee", "labelstudio_min", "jsonl", "tokens", "labelstudio"]
)
def test_records_are_read_as_lines_as_a_list_as_a_table_and_packed(tmp_path, write, format):
    examples = [FLAT[0], FLAT[2]]
    write_examples(examples, tmp_path / "written", format)
    content = (tmp_path / "written").read_text(encoding="utf-8")
    records = json.loads(content) if content[0] == "[" else [json.loads(line) for line in content.splitlines()]
    forms = ["".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)]
    forms += [json.dumps(records), json.dumps(records, ensure_ascii=False, indent=1)]
    forms += [as_table(records, delimiter) for delimiter in ",\t" if format != "labelstudio"]
    for data in (*map(str.encode, forms), *(gzip.compress(form.encode()) for form in forms)):
        path = write(data)
        assert [(contents(read), found) for read, found in [read_labeled(path)]] == [(contents(examples), format)]
        assert contents(read_examples(path, format)) == contents(examples)
        assert [text for text, _ in read_texts(path)] == [one.text for one in examples]


def test_a_folder_is_its_files_each_in_its_format(write, tmp_path):
    write('{"text": "甲", "label": [[0, 1, "a"]]}\n', "data/2.jsonl")
    write("王 B-P\n明 I-P\n", "data/1.bio")
    for name in (".hidden", "README.md", "deeper/file"):
        write("no data", f"data/{name}")
    examples, format = read_labeled(tmp_path / "data")
    assert contents(examples) == [("王明", (Entity(0, 2, "P"),)), ("甲", (Entity(0, 1, "a"),))]
    assert format == "bio, doccano"
    assert [one.where for one in examples] == [f"{tmp_path}/data/1.bio:1", f"{tmp_path}/data/2.jsonl:1"]
    write("甲\n", "data/3.txt")
    assert error_of(read_examples, tmp_path / "data").startswith(f"{tmp_path}/data/3.txt:1: no tag")


def test_a_file_of_brat_is_its_document(write):
    files = [write(*file) for file in (("甲", "docs/a.txt"), ("T1\tt 0 1\t甲\n", "docs/a.ann"))]
    write("乙", "docs/b.txt")
    folder = write("", "docs/b.ann").parent
    assert [read_labeled(file) for file in files] == 2 * [([read_examples(folder)[0]], "brat")]
    (folder / "c.ann").touch()
    (folder / "c.txt").symlink_to("/proc/self/mem")  # can be opened and not read
    assert error_of(read_examples, folder).startswith(f"{folder}/c.txt: cannot be read (")


def test_any_character_can_be_a_token_and_other_line_ends_after_a_tag_are_an_error(write):
    for token in " \t\u3000\u00a0\u2028\u0085\x0b\r\x00\ufeff{𠮷👍Ａ":
        for separator in " \t":
            (one,) = read_examples(write(f"甲{separator}O\n{token}{separator}B-X\n"))
            assert (one.text, one.entities) == ("甲" + token, (Entity(1, 2, "X"),))
    for end in "\r\x0b\x0c\x1c\u0085\u2028\u2029":
        for content in ("卢 B-P\n海 I-P\n在 O\n", "卢\tB-P\n海\tI-P", "甲 n O\n乙 n B-P\n"):
            message = error_of(read_examples, path := write(content.replace("\n", end)))
            assert message.startswith(f"{path}:1: ") and "LF" in message


TYPES = ["\x1b[31m", "\x00", "\x07", "a\rb", "a\nb", "a\tb", "\x7f", "\x9b2J", "a\u2028b", "\u202ea", "a\x02b", "a b"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_holds_a_type_with_strange_characters_or_refuses_it(tmp_path, format):
    separators = "\n\t\r \u2028" if format == "brat" else "\n\t\r \x02\u2028" if format in FLAT_ONLY else ""
    held = [kind for kind in TYPES if not set(kind) & set(separators)]
    for kind in TYPES:
        one, path = example("王明在", (0, 2, kind), where="memory:1"), tmp_path / str(TYPES.index(kind))
        if kind in held:
            write_examples([one], path, format)
            assert contents(read_examples(path, format)) == contents([one])
        else:
            assert error_of(write_examples, [one], path, format).startswith("memory:1: "), kind
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(str(TYPES.index(kind)) for kind in held)


def test_the_labeling_configuration_has_the_types_and_the_names_that_are_written():
    labels, text = ElementTree.fromstring(labeling_configuration(["name", 'a"<&b']))
    assert [label.get("value") for label in labels] == ["name", 'a"<&b']
    names = (labels.get("name"), labels.get("toName"), text.get("name"), text.get("value"))
    assert names == ("label", "text", "text", "$text")
    assert "XML" in error_of(labeling_configuration, ["name", "a\x00"])


def is_refused(bad, path, format, *words):
    message = error_of(write_examples, [*FLAT, *bad], path, format)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_format_cannot_hold_is_refused_and_an_old_file_stays(tmp_path, write, format):
    old = write("old")
    if format != "brat":  # whose folders are made
        is_refused([], tmp_path / "no" / "file", format)
    assert "no examples" in error_of(write_examples, [], old, format)
    if format == "jsonl":
        write_examples([example("")], tmp_path / "empty", format)
        assert contents(read_examples(tmp_path / "empty")) == [("", ())]
        return
    is_refused([example("", where="a:7")], old, format, "a:7: ", "jsonl")
    if format in FLAT_ONLY:
        for spans in (((0, 2, "L"), (0, 3, "O")), ((0, 3, "LOC"), (2, 4, "ORG")), ((0, 1, "a"), (0, 1, "b"))):
            is_refused([example("北京大学", *spans, where="a:7")], old, format, "a:7: ", "overlap")
    if format in TAGS:
        is_refused([example("第一\n行", where="a:7")], old, format, "a:7: ", "'\\n' (character 2)")
    assert [path.name for path in tmp_path.iterdir()] == [old.name] and old.read_text() == "old"


def test_brat_is_written_into_a_new_or_empty_folder_without_white_space_in_types(tmp_path, write, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    write_examples(FLAT[:2], "empty", "brat")
    names = ["000001.ann", "000001.txt", "000002.ann", "000002.txt"]
    assert sorted(path.name for path in Path("empty").iterdir()) == names
    for target in ("empty", write("x", "file"), "x" * 250, "y" * 300, ".", io.StringIO()):
        is_refused([], target, "brat", "folder")
    one = replace(RELATED[0], relations=(Relation(0, 2, "born in"),))
    is_refused([one], "new", "brat", "x:1: ", "'born in'", "doccano_entities")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


def test_dashes_are_the_standard_streams_and_ill_formed_tags_are_told_on_the_second():
    command = [sys.executable, "-m", "paddle_rope", "convert", "-", "-", "--to", "doccano"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, input="甲 I-P\n".encode(), capture_output=True, timeout=60, env=environment)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"text": "甲", "label": [[0, 1, "P"]]})
    warning, counts = done.stderr.decode("utf-8").splitlines()
    assert warning.startswith("<stdin>:1: 1 tag sequence is not well-formed") and "1 entities" in counts
