"""Reading labeled texts: formats, names of classes, and one line for what is wrong."""

import gzip
import json

import pytest

from tasks.classification.arguments import ClassificationArguments
from tasks.classification.data import class_names, read_examples, read_splits
from tasks.common.errors import InputError


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "data"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def read(path):
    return [(example.text, example.label) for example in read_examples(path)]


@pytest.mark.parametrize("key", ["text", "sentence"])
def test_json_lines_have_their_text_under_either_key_and_the_name_of_the_label_if_there_is_one(write, key):
    lines = [
        {key: "甲\n乙", "label": 8, "label_des": "公交", "id": 0},
        {key: "丙", "label": 1, "label_des": "体育"},
    ]
    assert read(write("".join(json.dumps(line) + "\n" for line in lines))) == [("甲\n乙", "公交"), ("丙", "体育")]
    for line in lines:
        del line["label_des"]
    assert read(write("\n\n".join(map(json.dumps, lines)))) == [("甲\n乙", "8"), ("丙", "1")]


def test_tab_separated_lines_end_with_lf_or_crlf_and_may_begin_with_a_byte_order_mark(write):
    assert read(write("\ufeff甲 乙\t好\r\n\n丙\t坏\n".encode())) == [("甲 乙", "好"), ("丙", "坏")]


@pytest.mark.parametrize(
    "content",
    [
        "text\tlabel\n[甲] 乙\t好\n丙\t坏\n",
        'id,标签,文本\n1,好,[甲] 乙\n\n2,坏,"丙"\n',
        '[{"text": "[甲] 乙", "label": "好"},\n {"sentence": "丙", "label": "坏"}]',
        "[甲] 乙\t好\n丙\t坏\n",
    ],
)
def test_lists_tables_and_lines_give_the_same(write, content):
    for data in (content, gzip.compress(content.encode())):
        assert read(write(data)) == [("[甲] 乙", "好"), ("丙", "坏")]


def test_classes_are_sorted_by_number_where_all_are_numbers(write):
    assert class_names(read_examples(write("a\t10\nb\t9\nc\t10\n"))) == ["9", "10"]
    assert class_names(read_examples(write("a\t10\nb\t9\nc\tx\n"))) == ["10", "9", "x"]


@pytest.mark.parametrize(
    "content, line, said",
    [
        ("", 1, "there is no text"),
        ("a\tx\nb\n", 2, "0 tabs"),
        ("a\tb\tx\n", 1, "2 tabs"),
        ("sentence\ttext_a\na\tx\n", 2, '"label" is None'),
        ("label\ttext_a\na\tx\n", 1, "header"),
        ("text,label\na,x\nb\n", 3, "1 values"),
        ("a,x\n", 1, "0 tabs"),
        ("text,label\n", 1, "there is no text"),
        ("[]", 1, "there is no text"),
        ('[{"text": "a"}]', 1, '"label" is None'),
        ("a\tx\n \ty\n", 2, "text is empty"),
        ("a\tx\nb\t \n", 2, "label is empty"),
        ('{"text": "a", "label": 1}\n{"text": "b"}\n', 2, '"label" is None'),
        ('{"text": "a", "label": true}\n', 1, '"label" is True'),
        ('{"text": "a", "label": [1]}\n', 1, '"label" is [1]'),
        ('{"label": 1}\n', 1, 'there is no "text"'),
        ('{"sentence": 5, "label": 1}\n', 1, '"sentence" is 5'),
        ('{"text": "a", "label": 1}\nb\tx\n', 2, "broken JSON"),
        ('{"text": "a", "text": "b", "label": 1}\n', 1, "repeated"),
        (b"a\tx\n\xff\ty\n", 2, "not UTF-8"),
        (r'{"text": "\ud83d", "label": 1}', 1, "surrogate"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(write, content, line, said):
    path = write(content)
    with pytest.raises(InputError) as raised:
        read_examples(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "second", [{"label": 1, "label_des": "乙"}, {"label": 2, "label_des": "甲"}, {"label": 1}], ids=str
)
def test_a_label_with_two_names_or_a_name_with_two_labels_is_refused(write, second):
    first = {"text": "a", "label": 1, "label_des": "甲"}
    path = write("\n".join(map(json.dumps, (first, {"text": "b", **second}))))
    with pytest.raises(InputError, match=f"{path}:2: .* at {path}:1; give each label one name"):
        read_examples(path)


@pytest.mark.parametrize(
    "content, said", [("a\tx\nb\tx\n", "all texts have the label 'x'"), ("x\ta\nx\tb\ny\tc\n", "label of its own")]
)
def test_labels_that_tell_nothing_are_refused(write, content, said):
    with pytest.raises(InputError, match=said):
        read_splits(ClassificationArguments(train_file=write(content)))


@pytest.mark.parametrize(
    "name, texts, classes",
    [
        ("sogou_news/train.jsonl", 1961, 10),
        ("iflytek_fewclue/train_few_all.json", 3024, 119),
        ("iflytek_fewclue/test_public.json", 1749, 98),
    ],
)
def test_real_file_has_the_counts_of_its_readme(shared_data, name, texts, classes):
    if (shared_data / "longtext").is_dir():
        examples = read_examples(shared_data / "longtext" / name)
        assert (len(examples), len(class_names(examples))) == (texts, classes)


def test_classes_of_thousands_of_digits_are_sorted_by_value_too(write):
    long = "9" * 5000
    path = write(f"甲\t{long}\n乙\t12\n丙\t0{long[1:]}\n丁\t7\n戊\t007\n")
    assert class_names(read_examples(path)) == ["007", "7", "12", f"0{long[1:]}", long]
