"""The forms in which labeled data come: lists, tables, gzip, folders; lists of tags; spaCy's JSON."""

import csv
import gzip
import io
import json

import pytest

from tasks.ner.data.reading import Entity, read_examples, read_labeled, read_texts, write_examples
from tasks.ner.examples import make_example
from tests.ner.reading import assert_error, contents, error_of

EXAMPLES = [
    make_example("王明在北京", [Entity(0, 2, "PER"), Entity(3, 5, "LOC")], "x:1"),
    make_example("没有。", [], "x:2"),
]
RECORD_FORMATS = [
    "cluener",
    "doccano",
    "doccano_entities",
    "cmeee",
    "labelstudio",
    "labelstudio_min",
    "jsonl",
    "tokens",
]


def records_of(tmp_path, format):
    """What a file of the format holds, as Python objects."""
    write_examples(EXAMPLES, tmp_path / "written", format)
    content = (tmp_path / "written").read_text(encoding="utf-8")
    return json.loads(content) if content[0] == "[" else [json.loads(line) for line in content.splitlines()]


def as_lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def as_csv(records, delimiter=","):
    stream = io.StringIO()
    names = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(stream, names, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in record.items()})
    return stream.getvalue()


@pytest.mark.parametrize("format", RECORD_FORMATS)
def test_records_are_read_as_lines_as_a_list_and_packed(tmp_path, write, format):
    records = records_of(tmp_path, format)
    whole = json.dumps(records, ensure_ascii=False, indent=1)
    for content in (as_lines(records), json.dumps(records), whole):
        for data in (content, gzip.compress(content.encode())):
            path = write(data)
            examples, found = read_labeled(path)
            assert contents(examples) == contents(EXAMPLES) and found == format
            assert contents(read_examples(path, format)) == contents(EXAMPLES)
            assert [text for text, _ in read_texts(path)] == [one.text for one in EXAMPLES]


@pytest.mark.parametrize("format", [name for name in RECORD_FORMATS if name != "labelstudio"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_records_are_read_from_tables_whose_cells_hold_json(tmp_path, write, format, delimiter):
    path = write(as_csv(records_of(tmp_path, format), delimiter))
    examples, found = read_labeled(path)
    assert contents(examples) == contents(EXAMPLES) and found == format
    assert [text for text, _ in read_texts(path)] == [one.text for one in EXAMPLES]


@pytest.mark.parametrize(
    "content",
    [
        '[{"words": ["王", "明"], "tags": ["B-P", "I-P"]}]',
        '{"text": ["王", "明"], "labels": ["B-P", "I-P"]}',
        '{"text": "王明", "label": ["B-P", "I-P"]}',
        '{"tokens": "王 明", "ner_tags": "B-P I-P"}',
        "text,labels\n王 明,B-P I-P\n",
        "sentence\tlabel\n王明\tB-P,I-P\n",
        'tokens,ner_tags,text\n"[""王"", ""明""]","[""B-P"", ""I-P""]",王明\n',
        '[{"text": "王明", "label": ["B-P", "E-P"]}]',
    ],
)
def test_lists_of_tags_have_many_names(write, content):
    path = write(content)
    examples, format = read_labeled(path)
    assert (contents(examples), format) == ([("王明", (Entity(0, 2, "P"),))], "tokens")


def test_tags_by_their_numbers_are_an_error_with_the_way_to_their_names(write):
    path = write('{"tokens": ["王", "明"], "ner_tags": [1, 2], "id": "0"}\n')
    assert_error(
        path, 1, '"ner_tags" holds the number 1, and the names of the tags are not in the file', ".feature.names"
    )
    assert read_texts(path) == [("王明", f"{path}:1")]


@pytest.mark.parametrize(
    "record, reason",
    [
        ('{"tokens": ["王"], "ner_tags": ["O", "O"]}', "1 tokens and 2 tags"),
        ('{"tokens": ["王", ""], "ner_tags": ["O", "O"]}', "not a list of strings that are not empty"),
        ('{"tokens": [], "ner_tags": []}', "there are no tokens"),
        ('{"tokens": ["王"], "ner_tags": ["X"]}', "unknown tag 'X'"),
        ('{"tokens": ["王"], "ner_tags": [null]}', "not a list of strings"),
        ('{"tokens": ["\\ud800"], "ner_tags": ["O"]}', "half of a surrogate pair"),
        ('{"tokens": ["王"], "ner_tags": ["B-\\ud800"]}', "a tag holds half of a surrogate pair"),
        ('{"tokens": ["王"]}', 'no "ner_tags", the file is unlabeled'),
    ],
)
def test_broken_lists_of_tags_are_an_error_with_their_line(write, record, reason):
    assert_error(write('{"tokens": ["甲"], "ner_tags": ["B-P"]}\n' + record), 2, reason)


def test_mixed_tags_are_an_error_with_both_lines(write):
    path = write('{"tokens": ["甲"], "ner_tags": ["I-P"]}\n{"tokens": ["甲"], "ner_tags": ["M-P"]}\n')
    assert_error(path, 2, f"tag 'M-P' mixes I- and M-, after 'I-P' in {path}:1")


DOCUMENT = {
    "id": 0,
    "paragraphs": [
        {
            "raw": "王明 在北京",
            "sentences": [
                {"tokens": [{"id": 0, "orth": "王", "ner": "B-PER"}, {"id": 1, "orth": "明", "ner": "L-PER"}]},
                {"tokens": [{"id": 2, "orth": "在", "ner": "O"}, {"id": 3, "orth": "北京", "ner": "U-LOC"}]},
            ],
        },
        {"sentences": [{"tokens": [{"orth": "New", "ner": "-"}, {"orth": "York", "ner": "U-LOC"}]}]},
        {"raw": "北京", "entities": [[0, 2, "LOC"]]},
    ],
}


def test_documents_of_spacy_have_a_text_for_each_paragraph(write):
    expected = [
        ("王明 在北京", (Entity(0, 2, "PER"), Entity(4, 6, "LOC"))),
        ("New York", (Entity(4, 8, "LOC"),)),
        ("北京", (Entity(0, 2, "LOC"),)),
    ]
    for content in (json.dumps([DOCUMENT], indent=1), json.dumps(DOCUMENT)):
        path = write(content)
        examples, format = read_labeled(path)
        assert (contents(examples), format) == (expected, "spacy")
        assert [text for text, _ in read_texts(path)] == [text for text, _ in expected]


@pytest.mark.parametrize(
    "paragraph, reason",
    [
        (
            {"raw": "甲乙", "sentences": [{"tokens": [{"orth": "乙", "ner": "O"}]}]},
            "token '乙' in the raw text",
        ),
        ({"sentences": [{"tokens": [{"orth": "乙", "ner": "X-a"}]}]}, "unknown tag 'X-a'"),
        ({"sentences": [{"tokens": [{"orth": "乙", "ner": "U-\ud800"}]}]}, "half of a surrogate pair"),
        ({"sentences": [{"tokens": [{"orth": "乙"}]}]}, 'no token has a "ner", the file is unlabeled'),
        ({"sentences": [{"tokens": [{}]}]}, 'a token has no "orth"'),
        ({"sentences": [1]}, '"sentences" is [1], not a list of objects'),
        ({"sentences": []}, "a paragraph has no text"),
        ({"raw": "甲", "entities": [[0, 2, "a"]]}, "span [0, 2] is not in the text"),
    ],
)
def test_broken_documents_of_spacy_are_an_error(write, paragraph, reason):
    assert_error(write(json.dumps([{"paragraphs": [paragraph]}])), 1, reason)


def test_tuples_of_spacy_are_read(write):
    path = write('[["王明", {"entities": [[0, 2, "PER"]]}],\n ["甲", {"entities": []}]]')
    assert contents(read_examples(path)) == [("王明", (Entity(0, 2, "PER"),)), ("甲", ())]
    assert [text for text, _ in read_texts(path)] == ["王明", "甲"]


def test_a_folder_is_its_files_each_in_its_format(write, tmp_path):
    write('{"text": "甲", "label": [[0, 1, "a"]]}\n', "data/2.jsonl")
    write("王 B-P\n明 I-P\n", "data/1.bio")
    write("no data", "data/.hidden")
    write("no data", "data/README.md")
    write("no data", "data/deeper/file")
    examples, format = read_labeled(tmp_path / "data")
    assert contents(examples) == [("王明", (Entity(0, 2, "P"),)), ("甲", (Entity(0, 1, "a"),))]
    assert format == "bio, doccano"
    assert [one.where for one in examples] == [f"{tmp_path}/data/1.bio:1", f"{tmp_path}/data/2.jsonl:1"]
    write("甲\n", "data/3.txt")
    assert error_of(read_examples, tmp_path / "data").startswith(f"{tmp_path}/data/3.txt:1: no tag")


def test_a_tagged_file_gives_its_texts_to_predict(write):
    path = write("甲 O\n乙 B-X\n\n丙 O\n")
    assert read_texts(path) == [("甲乙", f"{path}:1"), ("丙", f"{path}:4")]
    path = write("word,tag\n甲,O\n乙,O\n")
    assert read_texts(path) == [("甲乙", f"{path}:2")]


def test_unlabeled_tasks_of_label_studio_give_their_texts(write):
    path = write('[{"id": 1, "data": {"text": "甲"}},\n {"id": 2, "data": {"body": "乙"}, "annotations": []}]')
    assert read_texts(path) == [("甲", f"{path}:1"), ("乙", f"{path}:2")]


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


@pytest.mark.parametrize(
    "content, reason",
    [
        ("text,label\n今天,好\n", "\"label\" is '好', not a list"),
        ("text\n今天\n", 'no "label", the file is unlabeled'),
        ('[{"text": "甲"}]', "the file is unlabeled"),
        ('["甲"]', "the file is unlabeled"),
        ('text,label\n甲,"[[0, 1, ""a""], []]"\n', "label [] is not [start, end, type]"),
        ('text,label\n甲,"{""a"": 1, ""a"": 2}"\n', "key 'a' is repeated"),
    ],
)
def test_tables_without_entities_are_an_error_that_says_so(write, content, reason):
    assert reason in error_of(read_examples, write(content))
