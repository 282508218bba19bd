"""The converter: any format into any other, standard streams, errors that leave everything as it was."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.ner.data.reading import FORMATS, read_labeled, write_examples
from tasks.ner.examples import Entity, Example
from tests.helpers.verbs import verb

REPOSITORY = Path(__file__).resolve().parents[4]
convert_data = verb("convert")

EXAMPLES = [
    Example("王小明在北京。", (Entity(0, 3, "PER"), Entity(4, 6, "LOC")), "given:1"),
    Example("👍没有", (), "given:2"),
]
NESTED = [Example("北京大学", (Entity(0, 2, "LOC"), Entity(0, 4, "ORG")), "given:1")]


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def contents(path):
    examples, format = read_labeled(path)
    return [(example.text, example.entities) for example in examples], format


@pytest.mark.parametrize("source, target", [*zip(FORMATS, FORMATS), *zip(FORMATS, [*list(FORMATS)[1:], *FORMATS])])
def test_any_format_is_read_and_written(source, target, capsys):
    write_examples(EXAMPLES, "source", source)
    assert convert_data.main(["source", "target", "--to", target]) == 0
    assert contents("target") == ([(example.text, example.entities) for example in EXAMPLES], target)
    counts = "2 texts, 10 characters, 2 entities"
    printed = capsys.readouterr().out
    assert source in printed and target in printed and counts in printed


def test_dashes_are_the_standard_streams(monkeypatch, capsys):
    given = "中 B-LOC\n国 I-LOC\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode("utf-8")), encoding="ascii"))
    assert convert_data.main(["-", "-", "--to", "doccano"]) == 0
    captured = capsys.readouterr()
    assert captured.out == '{"text": "中国", "label": [[0, 2, "LOC"]]}\n'
    assert captured.err == "- (bio) -> - (doccano): 1 texts, 2 characters, 1 entities\n"


def test_file_without_any_entity_is_told(capsys):
    write_examples(EXAMPLES[1:], "source", "bio")
    assert convert_data.main(["source", "target", "--to", "jsonl"]) == 0
    assert "source: no entity is labeled" in capsys.readouterr().err


def test_process_says_on_standard_error_that_tags_are_ill_formed():
    command = [sys.executable, "-m", "paddle_rope", "convert", "-", "-", "--to", "jsonl"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, input="甲 I-P\n".encode(), capture_output=True, timeout=60, env=environment)
    assert done.returncode == 0
    assert json.loads(done.stdout)["entities"] == [{"start": 0, "end": 1, "type": "P", "text": "甲"}]
    warning, counts = done.stderr.decode("utf-8").splitlines()
    assert warning.startswith("<stdin>:1: 1 tag sequence is not well-formed (first: I-P at the beginning of a sent")
    assert counts.startswith("- (bio) -> - (jsonl): 1 texts")


def test_named_source_format_wins_over_the_recognized_one():
    write_examples([Example("甲", (), "given:1")], "source", "bio_sentences")
    assert convert_data.main(["source", "target", "--to", "jsonl", "--from", "bio_sentences"]) == 0
    assert json.loads(Path("target").read_text(encoding="utf-8")) == {"text": "甲", "entities": []}


@pytest.mark.parametrize(
    "words, message",
    [
        (["none", "out", "--to", "bio"], "none: no such file"),
        (["source", "out", "--to", "bmes"], "source:1: LOC '北京' [0, 2] and ORG '北京大学' [0, 4] overlap"),
        (["source", "./source", "--to", "bio"], "./source: is the source"),
        (["source", "no/out", "--to", "jsonl"], "no/out: cannot be written ("),
        (["source", "out", "--to", "bmes", "--from", "jsonl"], 'source:1: no "entities"'),
        (["source", "out", "--to", "conll"], "argument --to: invalid choice: 'conll'"),
        (["source", "-", "--to", "brat"], "brat documents need a folder"),
        (["docs", "docs", "--to", "jsonl"], "docs: is the source"),
        (["docs", "docs/new.bio", "--to", "jsonl"], "docs/new.bio: is the source"),
        (["docs/000001.ann", "docs/000001.txt", "--to", "jsonl"], "docs/000001.txt: is the source"),
        (["docs/000001.txt", "docs/000001.ann", "--to", "jsonl"], "docs/000001.ann: is the source"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line(fails, words, message):
    write_examples(NESTED, "source", "cluener")
    write_examples(NESTED, "docs", "brat")
    assert fails(convert_data, *words).startswith(message)


def test_file_beside_an_annotation_can_be_written():
    write_examples(NESTED, "docs", "brat")
    assert convert_data.main(["docs/000001.ann", "docs/000001.jsonl", "--to", "jsonl"]) == 0
    assert contents("docs/000001.jsonl")[0] == [(example.text, example.entities) for example in NESTED]


def test_help_shows_every_format(capsys):
    with pytest.raises(SystemExit):
        convert_data.main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n  {format} " in shown for format in FORMATS)
