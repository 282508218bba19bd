"""Readers of named entity data: formats, offsets, ill-formed tags and the errors a user can mend."""

import ast
import io
import json
import logging
import os
import re
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.ner.data import Entity, Example, entity_types, read_examples, read_texts

REPOSITORY = Path(__file__).resolve().parents[2]


def find_ner_data():
    """The folder ner/ of the real data sets, or None."""
    given = os.environ.get("PADDLE_ROPE_DATA")
    folders = ([Path(given)] if given else []) + [REPOSITORY.parent / "shared" / "data", REPOSITORY / "data"]
    return next((folder / "ner" for folder in folders if (folder / "ner").is_dir()), None)


def existing(rows):
    """Those of (file, ...) whose file exists, as parameters; one skipped parameter if there is none."""
    folder = find_ner_data()
    rows_found = [row for row in rows if folder and (folder / row[0]).is_file()]
    found = [pytest.param(folder / row[0], *row[1:], id=row[0]) for row in rows_found]
    missing = pytest.param(*[None] * len(rows[0]), marks=pytest.mark.skip(reason="the real data are not here"))
    return found or [missing]


@pytest.fixture
def write(tmp_path):
    def write(content, name="sample.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def json_line(text, label=None, **other):
    record = {"text": text, **other}
    if label is not None:
        record["label"] = label
    return json.dumps(record, ensure_ascii=False) + "\n"


def spans(example):
    return [(entity.start, entity.end, entity.type) for entity in example.entities]


def surfaces(example):
    return [(example.text[entity.start : entity.end], entity.type) for entity in example.entities]


def error_of(reader, *arguments):
    with pytest.raises(InputError) as caught:
        reader(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def assert_error(path, line, *parts):
    """Reading labelled data fails with path:line and all the parts, the last one being the remedy."""
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in message


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


COMMON_READERS = ("errors", "files", "json_lines", "text_files", "text_stream")
READERS = [
    *(REPOSITORY / "tasks" / "ner" / name for name in ("data.py", "examples.py", "tagging.py")),
    *(REPOSITORY / "tasks" / "common" / f"{name}.py" for name in COMMON_READERS),
    *sorted((REPOSITORY / "tasks" / "ner" / "formats").glob("*.py")),
]


@pytest.mark.parametrize("module", READERS, ids=lambda path: path.name)
def test_readers_import_only_the_standard_library(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.split(".")[0] for name in names} - {"tasks"} <= sys.stdlib_module_names
    ours = (*(f"tasks.common.{name}" for name in COMMON_READERS), "tasks.ner.")
    assert all(name.startswith(ours) for name in names if name.startswith("tasks"))


# ---- CLUENER JSON lines


def test_cluener_inclusive_ends_become_exclusive(write):
    text = "浙商银行企业信贷部叶老桂博士则从另一个角度"
    path = write(json_line(text, {"name": {"叶老桂": [[9, 11]]}, "company": {"浙商银行": [[0, 3]]}}))
    (example,) = read_examples(path)
    assert example == Example(text, (Entity(0, 4, "company"), Entity(9, 12, "name")), f"{path}:1")


def test_cluener_nested_and_overlapping_entities_are_kept_and_sorted(write):
    label = {
        "name": {"大学校": [[2, 4]]},
        "organization": {"北京大学": [[0, 3]]},
        "address": {"北京": [[0, 1]]},
        "company": {"北京": [[0, 1]]},
    }
    (example,) = read_examples(write(json_line("北京大学校长", label)))
    assert spans(example) == [(0, 2, "address"), (0, 2, "company"), (0, 4, "organization"), (2, 5, "name")]


def test_cluener_repeated_surface_keeps_each_span_and_a_repeated_span_only_once(write):
    (example,) = read_examples(write(json_line("曼联胜曼联", {"organization": {"曼联": [[3, 4], [0, 1], [3, 4]]}})))
    assert spans(example) == [(0, 2, "organization"), (3, 5, "organization")]


def test_cluener_spans_at_both_ends_and_of_the_whole_text(write):
    label = {"t": {"甲": [[0, 0]], "丙": [[2, 2]], "甲乙丙": [[0, 2]]}}
    (example,) = read_examples(write(json_line("甲乙丙", label)))
    assert spans(example) == [(0, 1, "t"), (0, 3, "t"), (2, 3, "t")]


def test_cluener_empty_label_is_an_example_without_entities(write):
    assert read_examples(write(json_line("没有实体", {})))[0].entities == ()


def test_cluener_other_keys_are_ignored(write):
    (example,) = read_examples(write(json_line("甲", {"t": {"甲": [[0, 0]]}}, id=7, extra=[None])))
    assert spans(example) == [(0, 1, "t")]


def test_cluener_blank_lines_are_skipped_but_counted(write):
    path = write("\n \t\n" + json_line("甲", {}) + "\n" + json_line("乙", {}))
    assert [(example.text, example.where) for example in read_examples(path)] == [
        ("甲", f"{path}:3"),
        ("乙", f"{path}:5"),
    ]


@pytest.mark.parametrize(
    "text, surface, start",
    [
        ("我叫𠮷田", "𠮷田", 2),
        ("𠮷𠮷田", "田", 2),
        ("👍🏽王明", "王明", 2),
        ("ＡＢＣ公司", "ＡＢＣ公司", 0),
        ("前\u2028张三", "张三", 2),
        ("前\u0085张三\u000b", "张三\u000b", 2),
        ("\u3000 张三\x00", "张三\x00", 2),
    ],
    ids=["beyond BMP", "after beyond BMP", "emoji", "full-width", "U+2028", "U+0085", "NUL"],
)
def test_cluener_offsets_count_code_points_of_rare_characters(write, text, surface, start):
    for ascii_only in (False, True):
        record = {"text": text, "label": {"t": {surface: [[start, start + len(surface) - 1]]}}}
        (example,) = read_examples(write(json.dumps(record, ensure_ascii=ascii_only)))
        assert (example.text, surfaces(example)) == (text, [(surface, "t")])


def test_cluener_byte_order_mark_crlf_and_a_missing_last_newline_change_nothing(write):
    content = json_line("甲乙", {"t": {"乙": [[1, 1]]}}) + json_line("丙", {})
    path = write(content)
    expected = read_examples(path)
    for variant in ("\ufeff" + content, content.replace("\n", "\r\n"), content[:-1]):
        assert read_examples(write(variant)) == expected


def test_unlabelled_line_is_an_error(write):
    path = write(json_line("甲", {}) + json_line("乙", id=0))
    assert_error(path, 2, 'no "label"', "unlabelled", "give labelled data")


def test_broken_json_is_an_error_with_its_column(write):
    assert_error(write(json_line("甲", {}) + '{"text": "乙", }\n'), 2, "broken JSON at column 15", "one JSON object")


@pytest.mark.parametrize(
    "line",
    ["中 B-LOC", "只是文字", '"text"', "[1]", "null", "[" * 100_000, '{"a": 1' + "0" * 5000],
    ids=["tagged", "plain", "string", "array", "null", "too deep", "huge integer"],
)
def test_line_that_is_no_json_object_in_a_json_lines_file_is_an_error(write, line):
    assert_error(write(json_line("甲", {}) + line + "\n"), 2, "JSON", "one JSON object")


@pytest.mark.parametrize("line", ['{"label": {}}', '{"text": 5, "label": {}}', '{"text": null, "label": {}}'])
def test_missing_or_non_string_text_is_an_error(write, line):
    assert_error(write(line), 1, '"text"', "give each line its text")


def test_empty_text_is_an_error_in_labelled_data(write):
    assert_error(write(json_line("", {})), 1, '"text" is empty', "remove the line")


@pytest.mark.parametrize("label", [None, "name", 3, {"t": []}, {"t": "甲"}, {"t": {"甲": {}}}, {"t": {"甲": 0}}])
def test_label_of_another_structure_is_an_error(write, label):
    line = json.dumps({"text": "甲乙", "label": label}, ensure_ascii=False)
    assert_error(write(line), 1, 'write it as {"type": {"surface": [[first, last]]}}')


@pytest.mark.parametrize("pair", [0, [0], [0, 0, 0], [0, 0.0], ["0", "0"], [False, False], [None, 0], {"0": 0}])
def test_span_that_is_no_pair_of_integers_is_an_error(write, pair):
    assert_error(write(json_line("甲乙", {"t": {"甲": [pair]}})), 1, "not a pair of integers", "[first, last]")


@pytest.mark.parametrize("pair", [[-1, 0], [1, 0], [0, 2], [2, 2], [-2, -1]])
def test_span_outside_the_text_is_an_error(write, pair):
    path = write(json_line("甲乙", {"t": {"甲": [pair]}}))
    assert_error(path, 1, str(pair), "2 characters", "first <= last < length")


def test_span_that_does_not_hold_its_surface_is_an_error_that_shows_both(write):
    path = write(json_line("甲乙", {}) + json_line("甲乙丙丁", {"t": {"甲乙": [[2, 3]]}}))
    assert_error(path, 2, "'丙丁'", "'甲乙'", "correct the offsets")


def test_exclusive_end_in_the_file_is_an_error_that_names_the_inclusive_one(write):
    path = write(json_line("甲乙丙", {"t": {"甲乙": [[0, 2]]}}))
    assert_error(path, 1, "'甲乙丙'", "the last included (here [0, 1])")


@pytest.mark.parametrize("type_", ["", " "])
def test_empty_type_name_is_an_error(write, type_):
    assert_error(write(json_line("甲", {type_: {"甲": [[0, 0]]}})), 1, "entity type", "empty", "name it")


def test_repeated_key_is_an_error_because_its_first_value_would_be_lost(write):
    line = '{"text": "曼联胜曼联", "label": {"t": {"曼联": [[0, 1]], "曼联": [[3, 4]]}}}'
    assert_error(write(line), 1, "'曼联' is repeated", "merge its values")


@pytest.mark.parametrize(
    "line", [r'{"text": "a\ud83d", "label": {}}', r'{"text": "a", "label": {"\udc00": {"a": [[0, 0]]}}}']
)
def test_half_of_a_surrogate_pair_is_an_error(write, line):
    assert_error(write(line), 1, "surrogate", "write the character itself")


def test_messages_stay_on_one_line_and_short_whatever_the_values_hold(write):
    message = error_of(read_examples, write(json_line("甲\n" * 900, {"t": {"乙\n" * 900: [[0, 1799]]}})))
    assert len(message) < 600


# ---- BIO and BMES


def tagged(*sentences):
    """The content of a tagged file; a sentence is written as "甲/B-X 乙/O"."""
    return "\n".join("".join(f"{item.replace('/', ' ')}\n" for item in sentence.split()) for sentence in sentences)


def test_bio_sentences_become_texts_with_half_open_spans(write):
    path = write(tagged("海/O 厦/B-LOC 门/I-LOC 与/O 金/B-LOC", "王/B-PER 明/I-PER 北/B-LOC 京/B-LOC"))
    assert read_examples(path) == [
        Example("海厦门与金", (Entity(1, 3, "LOC"), Entity(4, 5, "LOC")), f"{path}:1"),
        Example("王明北京", (Entity(0, 2, "PER"), Entity(2, 3, "LOC"), Entity(3, 4, "LOC")), f"{path}:7"),
    ]


def test_bmes_sentences_become_texts_with_half_open_spans(write):
    path = write(tagged("吴/B-NAME 重/M-NAME 阳/E-NAME ，/O 中/B-CONT 国/E-CONT", "京/S-LOC 沪/S-LOC"))
    assert read_examples(path) == [
        Example("吴重阳，中国", (Entity(0, 3, "NAME"), Entity(4, 6, "CONT")), f"{path}:1"),
        Example("京沪", (Entity(0, 1, "LOC"), Entity(1, 2, "LOC")), f"{path}:8"),
    ]


def test_scheme_is_decided_by_the_tags_of_the_whole_file(write, caplog):
    sentence = "中/B-LOC 国/B-LOC"
    assert spans(read_examples(write(tagged(sentence)))[0]) == [(0, 1, "LOC"), (1, 2, "LOC")]
    assert not caplog.records
    assert spans(read_examples(write(tagged(sentence, "京/S-LOC")))[0]) == [(0, 1, "LOC"), (1, 2, "LOC")]
    assert "2 tag sequences are not well-formed (first: B-LOC after B-LOC)" in caplog.text


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_token_and_tag_are_separated_by_a_space_or_a_tab(write, separator):
    (example,) = read_examples(write(f"京{separator}B-LOC\n都{separator}I-LOC\n"))
    assert (example.text, spans(example)) == ("京都", [(0, 2, "LOC")])


@pytest.mark.parametrize("token", list(" \t\u3000\u00a0\u2028\u0085\x0b\r\x00\ufeff{𠮷👍Ａ"), ids=ascii)
def test_any_character_can_be_a_token(write, token):
    for content in (f"{token} O\n京 B-LOC\n", f"甲 O\n{token} O\n京 B-LOC\n", f"{token} B-LOC\n"):
        (example,) = read_examples(write("\ufeff" + content))
        assert example.text == content.replace(" O\n", "").replace(" B-LOC\n", "")
        assert len(example.entities) == 1 and example.entities[0].end == len(example.text)


def test_offsets_count_characters_of_tokens_with_several(write):
    (example,) = read_examples(write("在 O\n2008 B-DATE\n年 I-DATE\nNBA B-ORG\n"))
    assert (example.text, surfaces(example)) == ("在2008年NBA", [("2008年", "DATE"), ("NBA", "ORG")])


def test_lines_of_white_space_end_a_sentence_and_make_no_empty_one(write):
    path = write("\n\n甲 O\n \n\t \n\n乙 O\n  \n\n")
    assert [(example.text, example.where) for example in read_examples(path)] == [
        ("甲", f"{path}:3"),
        ("乙", f"{path}:7"),
    ]


def test_tagged_byte_order_mark_crlf_and_a_missing_last_newline_change_nothing(write):
    content = tagged("中/B-LOC 国/I-LOC", "京/B-LOC")
    expected = read_examples(write(content))
    assert len(expected) == 2
    crlf = content.replace("\n", "\r\n")
    for variant in ("\ufeff" + content, crlf, content[:-1], crlf[:-2]):
        assert read_examples(write(variant)) == expected


def test_types_may_hold_hyphens_and_any_letters(write):
    (example,) = read_examples(write(tagged("甲/B-a-b 乙/I-a-b 丙/B-人名")))
    assert spans(example) == [(0, 2, "a-b"), (2, 3, "人名")]


ILL_FORMED = [
    ("甲/O 乙/I-PER 丙/I-PER", [(1, 3, "PER")], 2, "1 tag sequence is", "I-PER after O"),
    ("甲/I-PER 乙/O", [(0, 1, "PER")], 1, "1 tag sequence is", "I-PER at the beginning of a sentence"),
    ("甲/B-PER 乙/I-LOC", [(0, 1, "PER"), (1, 2, "LOC")], 2, "1 tag sequence is", "I-LOC after B-PER"),
    ("甲/B-PER 乙/M-PER 丙/O", [(0, 2, "PER")], 3, "1 tag sequence is", "O after M-PER"),
    ("甲/O 乙/B-PER 丙/M-PER", [(1, 3, "PER")], 3, "1 tag sequence is", "M-PER at the end of a sentence"),
    ("甲/B-PER 乙/M-LOC 丙/E-LOC", [(0, 1, "PER"), (1, 3, "LOC")], 2, "1 tag sequence is", "M-LOC after B-PER"),
    ("甲/B-PER 乙/E-LOC", [(0, 1, "PER"), (1, 2, "LOC")], 2, "1 tag sequence is", "E-LOC after B-PER"),
    ("甲/O 乙/E-PER 丙/E-PER", [(1, 2, "PER"), (2, 3, "PER")], 2, "2 tag sequences are", "E-PER after O"),
    ("甲/O 乙/M-PER 丙/E-PER", [(1, 3, "PER")], 2, "1 tag sequence is", "M-PER after O"),
    ("甲/B-PER 乙/S-PER", [(0, 1, "PER"), (1, 2, "PER")], 2, "1 tag sequence is", "S-PER after B-PER"),
    ("甲/S-PER 乙/M-PER", [(0, 1, "PER"), (1, 2, "PER")], 2, "2 tag sequences are", "M-PER after S-PER"),
    ("甲/B-PER 乙/B-PER 丙/E-PER", [(0, 1, "PER"), (1, 3, "PER")], 2, "1 tag sequence is", "B-PER after B-PER"),
]


@pytest.mark.parametrize("sentence, expected, line, count, first", ILL_FORMED, ids=[row[0] for row in ILL_FORMED])
def test_ill_formed_tags_are_read_as_conlleval_does_and_reported_once(
    write, caplog, recwarn, sentence, expected, line, count, first
):
    path = write(tagged(sentence))
    assert spans(read_examples(path)[0]) == expected
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("tasks.ner.formats.tags", logging.WARNING)
    message = record.getMessage()
    assert message.startswith(f"{path}:{line}: {count} not well-formed (first: {first}); read as")
    assert "\n" not in message
    assert not recwarn.list


def test_ill_formed_tags_of_a_whole_file_are_one_line_of_the_log(write, caplog):
    path = write(tagged("甲/B-PER 乙/I-PER", "丙/O 丁/I-PER", "戊/I-LOC", "己/I-LOC"))
    read_examples(path)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:5: 3 tag sequences are not well-formed (first: I-PER after O)")


def test_well_formed_tags_log_nothing(write, caplog):
    read_examples(write(tagged("甲/B-PER 乙/I-PER 丙/B-PER 丁/O")))
    read_examples(write(tagged("甲/B-PER 乙/M-PER 丙/E-PER 丁/S-PER 戊/B-PER 己/E-PER 庚/O")))
    assert not caplog.records


@pytest.mark.parametrize(
    "tag", ["X-PER", "B", "B-", "b-PER", "o", "I", "BPER", "B_PER", "-PER", "O-PER", "0", "E-\u3000"]
)
def test_unknown_tag_is_an_error_with_the_tags_that_are_allowed(write, tag):
    assert_error(write(f"甲 O\n乙 {tag}\n"), 2, f"unknown tag {tag!r}", "O, B-X, I-X", "O, B-X, M-X, E-X, S-X")


@pytest.mark.parametrize("line", ["乙", "O", " O", "B-PER", "乙 ", "\u3000", "{"])
def test_line_with_one_field_only_is_an_error(write, line):
    assert_error(write(f"甲 O\n{line}\n"), 2, "no ", "write one character, one space or tab and its tag")


@pytest.mark.parametrize("line", ["乙 NN O", "乙\t\tO", "乙  O", " 乙 O", "   O"])
def test_line_with_further_columns_is_an_error(write, line):
    assert_error(write(f"甲 O\n{line}\n"), 2, "more than two columns", "keep one character and its tag")


def test_mixing_i_and_m_is_an_error_at_the_first_offending_line(write):
    content = "甲 B-PER\n乙 I-PER\n丙 O\n丁 M-PER\n戊 M-PER\n"
    assert_error(write(content), 4, "'M-PER'", "'I-PER' in line 2", "write all tags as BIO (O, B-X, I-X), ")
    content = "甲 M-PER\n\n乙 S-LOC\n丁 I-LOC\n"
    assert_error(write(content), 4, "'I-LOC'", "'M-PER' in line 1", "as BMES (O, B-X, M-X, E-X, S-X)")


def test_bioes_sentences_become_texts_with_half_open_spans(write, caplog):
    path = write(tagged("吴/B-NAME 重/I-NAME 阳/E-NAME ，/O 中/B-CONT 国/E-CONT", "京/S-LOC 沪/S-LOC"))
    assert [spans(example) for example in read_examples(path)] == [
        [(0, 3, "NAME"), (4, 6, "CONT")],
        [(0, 1, "LOC"), (1, 2, "LOC")],
    ]
    assert not caplog.records


def test_json_line_in_a_tagged_file_is_an_error(write):
    assert_error(write("甲 O\n\n" + json_line("乙", {})), 3, "unknown tag", "allowed are")


def test_plain_text_is_no_labelled_data(write):
    assert_error(write("浙商银行企业信贷部\n"), 1, "no tag", "such as '中 B-LOC'")


# ---- files


@pytest.mark.parametrize("reader", [read_examples, read_texts])
def test_missing_file_and_directory_are_errors(tmp_path, reader):
    missing = tmp_path / "missing.txt"
    assert error_of(reader, missing) == f"{missing}: no such file; check the path"
    message = error_of(reader, str(tmp_path))
    assert message.startswith(f"{tmp_path}: is a directory") and message.endswith("; give the path of a file in it")
    assert "check the path" in error_of(reader, "")
    assert "check the path" in error_of(reader, "a\x00b")


@pytest.mark.parametrize("content", ["", "\n", " \n\t\r\n", "\ufeff", "\ufeff\n"])
def test_labelled_file_without_content_is_an_error(write, content):
    assert_error(write(content), 1, "empty", "give labelled data")


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


@pytest.mark.parametrize("line", ["{", "{甲}", '{"txt": "甲"}', '{"text": "甲"', '"text"', "[1]", "{}"])
def test_first_line_that_is_no_json_object_with_a_text_makes_plain_text(write, line):
    assert texts(write(line + "\n" + json_line("乙"))) == [line, json_line("乙")[:-1]]


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
    give(b"a\n\xff\n")
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
def test_real_unlabelled_file_gives_texts_but_no_examples(path, count):
    assert len(read_texts(path)) == count
    assert error_of(read_examples, path).startswith(f'{path}:1: no "label"')


@pytest.mark.parametrize("path", existing([("cluener/dev.json",)]))
def test_real_labelled_file_gives_the_same_texts_to_predict(path):
    assert read_texts(path) == [(example.text, example.where) for example in read_examples(path)]
