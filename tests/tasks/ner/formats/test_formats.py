"""Every format: what is written reads back the same, what it cannot hold is refused."""

import io
import random
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tasks.ner.data.reading import FORMATS, Entity, Example, read_examples, read_labeled, write_examples
from tasks.ner.formats.brat import NAME as BRAT
from tasks.ner.formats.label_studio import labeling_configuration
from tests.tasks.ner.reading import contents, error_of

TAGS = ["bio", "bioes", "bmes", "bio_sentences", "bioes_sentences", "bmes_sentences"]
NESTED = ["cluener", "doccano", "doccano_entities", "cmeee", "labelstudio", "labelstudio_min", "jsonl", "spacy", BRAT]

LONG = "很长的文本，" * 3000


def example(text, *entities, where="given:1"):
    return Example(text, tuple(sorted(Entity(*entity) for entity in entities)), where)


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


def write_and_read(examples, path, format, name=None):
    write_examples(examples, path, format)
    return read_labeled(path, name)


# ---- round trips


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_reads_back_the_same_named_and_recognized(tmp_path, format):
    examples = FLAT + (DEEP if format in NESTED else [])
    for name in (format, None):
        again, found = write_and_read(examples, tmp_path / str(name), format, name)
        assert contents(again) == contents(examples)
        assert found == format


@pytest.mark.parametrize("format", FORMATS)
def test_each_example_alone_reads_back_the_same(tmp_path, format):
    for index, one in enumerate(FLAT):
        again, _ = write_and_read([one], tmp_path / f"out {index}", format, format)
        assert contents(again) == contents([one])


@pytest.mark.parametrize("format", NESTED)
def test_each_nested_example_alone_reads_back_the_same_without_naming_the_format(tmp_path, format):
    for index, one in enumerate(DEEP):
        again, found = write_and_read([one], tmp_path / f"out {index}", format)
        assert contents(again) == contents([one]) and found == format


def random_example(draw, flat):
    text = "".join(draw.choices("中国北京a1 　-O{[，。👍\u2028", k=draw.randint(2, 12)))
    entities, start = set(), 0
    for _ in range(draw.randint(0, 5)):
        start = start if flat else draw.randrange(len(text))
        if start < len(text):
            end = draw.randint(start + 1, len(text))
            entities.add((start, end, draw.choice(["PER", "LOC", "类-型"])))
            start = end
    return example(text, *entities)


@pytest.mark.parametrize("format", FORMATS)
def test_random_examples_read_back_the_same(tmp_path, format):
    draw = random.Random(format)
    examples = [random_example(draw, flat=format not in NESTED) for _ in range(300)]
    assert sum(len(one.entities) for one in examples) > 300
    again, found = write_and_read(examples, tmp_path / "out", format)
    assert contents(again) == contents(examples) and found == format


@pytest.mark.parametrize("format", [format for format in FORMATS if format != BRAT])
def test_an_open_file_gets_what_a_path_gets(tmp_path, format):
    stream = io.StringIO()
    write_examples(FLAT, stream, format)
    write_examples(FLAT, tmp_path / "out", format)
    assert stream.getvalue().encode("utf-8") == (tmp_path / "out").read_bytes()


@pytest.mark.parametrize("format", TAGS)
def test_tags_that_are_written_are_well_formed(tmp_path, caplog, format):
    write_and_read(FLAT, tmp_path / "out", format)
    assert not caplog.records


GOLDEN = yaml.safe_load(Path(__file__).with_name("written.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_has_not_changed(tmp_path, format):
    examples = [example("王小明在京。", (0, 3, "PER"), (4, 5, "LOC")), example("没有")]
    write_examples(examples, tmp_path / "out", format)
    if format == BRAT:
        assert {path.name: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()} == GOLDEN[format]
    else:
        assert (tmp_path / "out").read_text(encoding="utf-8") == GOLDEN[format]


def test_the_labeling_configuration_has_the_types_and_the_names_that_are_written():
    labels, text = ElementTree.fromstring(labeling_configuration(["name", 'a"<&b']))
    assert [label.get("value") for label in labels] == ["name", 'a"<&b']
    names = (labels.get("name"), labels.get("toName"), text.get("name"), text.get("value"))
    assert names == ("label", "text", "text", "$text")


# ---- what a format cannot hold


@pytest.mark.parametrize("format", TAGS)
@pytest.mark.parametrize(
    "bad, reason",
    [
        (example("北京大", (0, 2, "L"), (0, 3, "O"), where="a:7"), "L '北京' [0, 2] and O '北京大' [0, 3] overlap"),
        (example("北京大学", (0, 3, "LOC"), (2, 4, "ORG"), where="a:7"), "overlap, and tags are flat"),
        (example("北京", (0, 1, "a"), (0, 1, "b"), where="a:7"), "overlap, and tags are flat"),
        (example("第一\n行", where="a:7"), "the text has '\\n' (character 2)"),
        (example("北", (0, 1, "a b"), where="a:7"), "the entity type 'a b' cannot be part of a tag"),
        (example("北", (0, 1, "a\r"), where="a:7"), "the entity type 'a\\r' cannot"),
    ],
)
def test_tags_refuse_what_they_cannot_hold_and_write_nothing(tmp_path, format, bad, reason):
    message = error_of(write_examples, [*FLAT, bad], tmp_path / "out", format)
    assert message.startswith("a:7: ") and reason in message
    assert message.endswith("or write cluener, doccano, cmeee, jsonl or brat")
    stream = io.StringIO()
    error_of(write_examples, [*FLAT, bad], stream, format)
    assert stream.getvalue() == "" and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("character", ["\t", "\x02"])
def test_sentence_layout_refuses_its_separators(tmp_path, character):
    message = error_of(write_examples, [example(f"甲{character}")], tmp_path / "out", "bio_sentences")
    assert f"the text has {character!r} (character 1), which separates" in message
    assert contents(write_and_read([example(f"甲{character}")], tmp_path / "out", "bio")[0]) == [(f"甲{character}", ())]


def test_brat_refuses_what_it_cannot_hold_and_makes_no_folder(tmp_path):
    bad = example("甲", (0, 1, "a b"))
    assert "'a b' has white space" in error_of(write_examples, [example("乙"), bad], tmp_path / "out", BRAT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 250, "y" * 300, "."])
def test_brat_says_in_one_line_which_folder_it_cannot_write(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert "give another folder" in error_of(write_examples, [example("乙")], name, BRAT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_only_jsonl_holds_an_empty_text(tmp_path, format):
    texts = [example("乙"), example("", where="a:7")]
    if format == "jsonl":
        assert contents(write_and_read(texts, tmp_path / "out", format)[0]) == [("乙", ()), ("", ())]
        return
    assert error_of(write_examples, texts, tmp_path / "out", format).startswith("a:7: an empty text, which only jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_no_examples_are_not_written(tmp_path, format):
    assert "no examples to write" in error_of(write_examples, [], tmp_path / "out", format)
    assert list(tmp_path.iterdir()) == []


def test_unknown_format_names_the_formats(tmp_path, write):
    for call, *arguments in ((read_examples, write("甲 O\n")), (write_examples, FLAT, tmp_path / "out")):
        message = error_of(call, *arguments, "conll")
        assert message.startswith("unknown format 'conll'; the formats are cluener, bio, ") and message.endswith("brat")


@pytest.mark.parametrize("format", FORMATS)
def test_old_file_is_kept_when_writing_fails(write, tmp_path, format):
    old = write("old")
    bad = example("甲\n", (0, 1, "a b")) if format not in NESTED or format == BRAT else None
    if bad is not None:
        error_of(write_examples, [bad], old, format)
    error_of(write_examples, FLAT, tmp_path / "no" / "file", format)
    assert old.read_text() == "old"


def test_brat_is_written_into_a_new_or_empty_folder_only(tmp_path, write):
    (tmp_path / "empty").mkdir()
    write_examples(FLAT[:2], tmp_path / "empty", BRAT)
    names = ["000001.ann", "000001.txt", "000002.ann", "000002.txt"]
    assert sorted(path.name for path in (tmp_path / "empty").iterdir()) == names
    assert "is not empty" in error_of(write_examples, FLAT, tmp_path / "empty", BRAT)
    assert "is a file" in error_of(write_examples, FLAT, write("x", "file"), BRAT)
    assert "need a folder" in error_of(write_examples, FLAT, io.StringIO(), BRAT)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]
