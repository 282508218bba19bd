"""CLUENER JSON lines: offsets of characters, what is kept, and the errors a user can mend."""

import json

import pytest

from tasks.ner.data.reading import Entity, Example, read_examples
from tests.ner.reading import assert_error, error_of, json_line, spans, surfaces


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


def test_unlabeled_line_is_an_error(write):
    path = write(json_line("甲", {}) + json_line("乙", id=0))
    assert_error(path, 2, 'no "label"', "unlabeled", "give labeled data")


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


def test_empty_text_is_an_error_in_labeled_data(write):
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
