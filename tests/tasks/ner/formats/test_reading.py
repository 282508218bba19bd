"""What labeled files read as: ``reading.yaml`` has the cases; here are the ones that are made or compared."""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest
import yaml

from tasks.ner.data.reading import Entity, read_examples, read_labeled, read_texts, write_examples
from tasks.ner.examples import make_example
from tests.tasks.ner.reading import contents, error_of, json_line, spans

GROUPS = yaml.safe_load(Path(__file__).with_name("reading.yaml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(case, id=f"{group['title']} {number}".replace(" ", "-"))
    for group in GROUPS
    for number, case in enumerate(group["cases"])
]


@pytest.mark.parametrize("case", CASES)
def test_a_file_reads_as_expected(write, caplog, case):
    content = case["content"]
    if isinstance(content, dict):  # a folder of brat
        path = [write(text, f"docs/{name}") for name, text in content.items()][0].parent
    else:
        path = write(content, "sample")

    def shortened(text):
        return text.replace(f"{path}:", "").replace(f"{path}/", "")

    if "error" in case:
        message = error_of(read_examples, path, case.get("format"))
        assert shortened(message).startswith(case["error"]) and "; " in message
        return
    examples, format = read_labeled(path, case.get("format"))
    assert [[one.text, [list(span) for span in spans(one)], shortened(one.where)] for one in examples] == [
        [text, entities, str(where)] for text, entities, where in case["examples"]
    ]
    assert format == case.get("recognized", case.get("format"))
    messages = [shortened(record.getMessage()) for record in caplog.records]
    assert [message[: len(part)] for message, part in zip(messages, case.get("log", []), strict=True)] == case.get(
        "log", []
    )


# ---- records in every form

EXAMPLES = [
    make_example("王明在北京", [Entity(0, 2, "PER"), Entity(3, 5, "LOC")], "x:1"),
    make_example("没有。", [], "x:2"),
]
RECORD_FORMATS = ["cluener", "doccano", "doccano_entities", "cmeee", "labelstudio_min", "jsonl", "tokens"]


def records_of(tmp_path, format):
    """The records of a file of the format."""
    write_examples(EXAMPLES, tmp_path / "written", format)
    content = (tmp_path / "written").read_text(encoding="utf-8")
    return json.loads(content) if content[0] == "[" else [json.loads(line) for line in content.splitlines()]


def as_table(records, delimiter):
    stream = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(stream, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in record.items()})
    return stream.getvalue()


@pytest.mark.parametrize("format", [*RECORD_FORMATS, "labelstudio"])
def test_records_are_read_as_lines_as_a_list_as_a_table_and_packed(tmp_path, write, format):
    records = records_of(tmp_path, format)
    forms = ["".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)]
    forms += [json.dumps(records), json.dumps(records, ensure_ascii=False, indent=1)]
    forms += [as_table(records, delimiter) for delimiter in ",\t" if format != "labelstudio"]
    for content in forms:
        for data in (content, gzip.compress(content.encode())):
            path = write(data)
            examples, found = read_labeled(path)
            assert contents(examples) == contents(EXAMPLES) and found == format
            assert contents(read_examples(path, format)) == contents(EXAMPLES)
            assert [text for text, _ in read_texts(path)] == [one.text for one in EXAMPLES]


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


@pytest.mark.parametrize("depth", range(900, 1100, 40))
@pytest.mark.parametrize("label", ["[", '{"a": '])
def test_data_nested_deep_are_an_error_with_their_line(write, depth, label):
    nested = label * depth + "1" + {"[": "]", "{": "}"}[label[0]] * depth
    for record in (f'{{"text": "甲", "label": {nested}}}', f'[{{"text": "甲", "entities": {nested}}}]'):
        path = write(record)
        assert error_of(read_examples, path).startswith(f"{path}:1: ")


@pytest.mark.parametrize(
    "line",
    ["中 B-LOC", "只是文字", '"text"', "[1]", "null", "[" * 100_000, '{"a": 1' + "0" * 5000],
    ids=["tagged", "plain", "string", "array", "null", "too deep", "huge integer"],
)
def test_a_line_that_is_no_json_object_among_others_is_an_error(write, line):
    path = write(json_line("甲", {}) + line + "\n")
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:2: ") and "JSON" in message


def test_messages_stay_on_one_line_and_short_whatever_the_values_hold(write):
    message = error_of(read_examples, write(json_line("甲\n" * 900, {"t": {"乙\n" * 900: [[0, 1799]]}})))
    assert len(message) < 600


# ---- tags


@pytest.mark.parametrize("token", list(" \t\u3000\u00a0\u2028\u0085\x0b\r\x00\ufeff{𠮷👍Ａ"), ids=ascii)
def test_any_character_can_be_a_token(write, token):
    for separator in " \t":
        (example,) = read_examples(write(f"甲{separator}O\n{token}{separator}B-X\n"))
        assert (example.text, spans(example)) == ("甲" + token, [(1, 2, "X")])


@pytest.mark.parametrize("end", list("\r\x0b\x0c\x1c\u0085\u2028\u2029"), ids=ascii)
@pytest.mark.parametrize("content", ["卢 B-P\n海 I-P\n在 O\n", "卢\tB-P\n海\tI-P", "甲 n O\n乙 n B-P\n"])
def test_other_line_ends_after_a_tag_are_an_error(write, content, end):
    path = write(content.replace("\n", end))
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:1: expected a line end after the tag") and "end each line with LF" in message


# ---- brat


def test_a_file_of_brat_is_its_document(write):
    write("甲", "docs/a.txt")
    write("T1\tt 0 1\t甲\n", "docs/a.ann")
    write("乙", "docs/b.txt")
    folder = write("", "docs/b.ann").parent
    for name in ("a.ann", "a.txt"):
        assert read_labeled(folder / name) == ([read_examples(folder)[0]], "brat")
    assert read_labeled(write("甲 O\n", "plain.txt"))[1] == "bio"


def test_brat_needs_both_files_of_a_document(tmp_path, write):
    write("甲", "docs/x.txt")
    folder = write("", "docs/x.ann").parent
    write("乙", "docs/y.txt")
    assert error_of(read_examples, folder).startswith(f"{folder}/y.ann: no such file beside y.txt; brat needs both; a")
    (folder / "y.txt").rename(folder / "z.ann")
    assert error_of(read_examples, folder).startswith(f"{folder}/z.txt: no such file beside z.ann")
    assert "neither a folder nor" in error_of(read_examples, write("甲 O\n", "sample"), "brat")
    assert "no such file" in error_of(read_examples, tmp_path / "none.ann")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file here that can be opened and not read")
def test_unreadable_brat_text_is_an_error(write):
    folder = write("", "docs/x.ann").parent
    (folder / "x.txt").symlink_to("/proc/self/mem")
    assert error_of(read_examples, folder).startswith(f"{folder}/x.txt: cannot be read (")


# ---- texts of labeled files, to predict


@pytest.mark.parametrize(
    "content, expected",
    [
        ("甲 O\n乙 B-X\n\n丙 O\n", [("甲乙", 1), ("丙", 4)]),
        ("word,tag\n甲,O\n乙,O\n", [("甲乙", 2)]),
        ('{"tokens": ["王", "明"], "ner_tags": [1, 2], "id": "0"}\n', [("王明", 1)]),
        ('[["王明", {"entities": [[0, 2, "PER"]]}],\n ["甲", {"entities": []}]]', [("王明", 1), ("甲", 2)]),
        ('[{"paragraphs": [{"raw": "甲"}, {"sentences": [{"tokens": [{"orth": "乙"}]}]}]}]', [("甲", 1), ("乙", 1)]),
        (
            '[{"id": 1, "data": {"text": "甲"}},\n {"id": 2, "data": {"body": "乙"}, "annotations": []}]',
            [("甲", 1), ("乙", 2)],
        ),
    ],
)
def test_labeled_files_give_their_texts_to_predict(write, content, expected):
    path = write(content)
    assert read_texts(path) == [(text, f"{path}:{line}") for text, line in expected]


@pytest.mark.parametrize(
    "content, reason",
    [
        ('[{"id": 1}]', 'there is no "text"'),
        ("text,label\n", "a table with a header without a text"),
        ("[]", "a JSON list without a text"),
        ("sentence,text\na\n", "1 values, but the header"),
        ("sentence1,sentence2\na,b\n", 'there is no "text"'),
    ],
)
def test_lists_and_tables_without_texts_are_an_error(write, content, reason):
    assert reason in error_of(read_texts, write(content))
