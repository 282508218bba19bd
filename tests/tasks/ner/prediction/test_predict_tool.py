"""paddle-rope predict: streams, formats, pages, progress."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import predict_ner
import pytest

from tasks.commands import predict as command
from tasks.ner.data.reading import read_examples
from tasks.ner.prediction.predictor import NerPredictor

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def records(trained, corpus):
    return NerPredictor(trained.model, "cpu")([record["text"] for record in corpus.dev_records])


def run(trained, *words):
    return predict_ner.main([str(trained.model), "--device", "cpu", *map(str, words)])


def test_a_line_is_answered_before_the_next_is_written(trained, predict):
    command = [sys.executable, str(REPOSITORY / "tools" / "predict_ner.py"), str(trained.model), "--device", "cpu"]
    lines = ["王明在青川市。\n", "\n", "他去年10月到了碧洲县。\n"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        answers = []
        for line in lines:
            process.stdin.write(line.encode("utf-8"))
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))  # waits for ever if it is not written as it goes
        process.stdin.close()
        assert process.stdout.read() == b"" and process.wait(60) == 0
    assert [answer["text"] for answer in answers] == [line.rstrip("\n") for line in lines]
    assert answers[0] == predict(lines[0])[0]


@pytest.mark.parametrize("format", ["jsonl", "cluener", "doccano"])
def test_labeled_file_goes_in_and_labeled_data_comes_out(trained, corpus, records, tmp_path, format):
    output = tmp_path / "found"
    assert run(trained, "--input", corpus.dev, "--output", output, "--format", format) == 0
    found = [(e.text, [(x.start, x.end, x.type) for x in e.entities]) for e in read_examples(output)]
    expected = [(r["text"], [(e["start"], e["end"], e["type"]) for e in r["entities"]]) for r in records]
    assert found == expected
    assert sum(len(entities) for _, entities in found) > 20


def test_lists_tables_and_gzip_give_what_their_texts_give(trained, corpus, records, tmp_path, caplog):
    texts = [record["text"] for record in corpus.dev_records[:20]]
    written = json.dumps([{"text": text, "entities": []} for text in texts], ensure_ascii=False)
    table = "text,id\n" + "".join(f'"{text}",{number}\n' for number, text in enumerate(texts))
    for name, content in (("a.json", written), ("a.csv", table), ("a.json.gz", written)):
        content = content.encode("utf-8")
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        assert run(trained, "--input", tmp_path / name, "--output", tmp_path / "found") == 0
        found = [json.loads(line) for line in (tmp_path / "found").read_text(encoding="utf-8").splitlines()]
        assert [(one["text"], [e["type"] for e in one["entities"]]) for one in found] == [
            (one["text"], [e["type"] for e in one["entities"]]) for one in records[:20]
        ]
        assert caplog.records[-1].getMessage().startswith(f"{tmp_path / name}: read as a ")


def test_bio_is_labeled_data_and_says_what_it_leaves_out(trained, corpus, records, tmp_path, capsys):
    output = tmp_path / "found"
    assert run(trained, "--input", corpus.dev, "--output", output, "--format", "bio") == 0
    examples = read_examples(output)
    assert [example.text for example in examples] == [record["text"] for record in records]
    left_out = 0
    for example, record in zip(examples, records):
        every = {(e["start"], e["end"], e["type"]) for e in record["entities"]}
        found = {(e.start, e.end, e.type) for e in example.entities}
        assert found <= every
        assert all(a.end <= b.start for a, b in zip(example.entities, example.entities[1:]))
        left_out += len(every - found)
    note = re.search(r"note: (\d+) nested or overlapping entities are left out", capsys.readouterr().err)
    assert int(note[1]) == left_out > 0


def test_small_chunks_give_the_same(trained, corpus, records, tmp_path, monkeypatch):
    monkeypatch.setitem(command.CHUNK_BATCHES, "ner", 1)
    output = tmp_path / "found"
    assert run(trained, "--input", corpus.dev, "--output", output, "--batch_size", 3) == 0
    found = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [r["text"] for r in found] == [r["text"] for r in records]
    spans = [[[(e["start"], e["end"], e["type"]) for e in r["entities"]] for r in rows] for rows in (found, records)]
    assert spans[0] == spans[1]


def test_page_holds_all_texts_and_entities(trained, corpus, records, tmp_path):
    page = tmp_path / "page.html"
    assert run(trained, "--input", corpus.dev, "--output", tmp_path / "found", "--html", page) == 0
    content = page.read_text(encoding="utf-8")
    assert content.count("<section") == len(records)
    whole = len(re.findall(r'<mark class="t\d+( goes-on-right)?"', content))  # of an entity in pieces the first
    assert whole == sum(len(record["entities"]) for record in records)


@pytest.mark.parametrize("language, word", [("en", "probability"), ("zh", "概率")])
def test_page_is_in_the_language_that_is_asked_for(language, word, trained, tmp_path):
    (tmp_path / "in").write_text("今天没有人。\n", encoding="utf-8")
    words = ["--input", tmp_path / "in", "--output", tmp_path / "found", "--html", tmp_path / "page.html"]
    assert run(trained, *words, "--html_language", language) == 0
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'<html lang="{language}">' in content and word in content  # the model has temperatures


def test_page_of_a_file_whose_name_is_not_utf_8(trained, tmp_path):
    name = tmp_path / os.fsdecode(b"x\xff.txt")
    name.write_text("今天没有人。\n", encoding="utf-8")
    assert run(trained, "--input", name, "--output", tmp_path / "found", "--html", tmp_path / "page.html") == 0
    assert "没有人。" in (tmp_path / "page.html").read_bytes().decode("utf-8")


def test_wrong_line_leaves_neither_output_nor_page(trained, fails, tmp_path):
    (tmp_path / "in").write_bytes(b'{"text": "a"}\n{"text": 1}\n')
    words = [trained.model, "--input", "in", "--output", "out", "--html", "page.html", "--device", "cpu"]
    assert fails(predict_ner, *words).startswith('in:2: "text" is 1, not a string')


@pytest.mark.parametrize(
    "words, message",
    [
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["--html", "."], ".: is a folder; give the name of a file"),
        (["--html", "no/page"], "no/page: cannot be written"),
        (["--html", "texts"], "texts: is the input too; give another --html"),
        (["--output", "a", "--html", "./a"], "./a: is the --output too; give another --html"),
        (["--overlap", "99"], "--overlap 99: must be from 0 to max_tokens - 2, "),
    ],
)
def test_what_a_user_gets_wrong_is_one_line(trained, fails, tmp_path, words, message):
    (tmp_path / "texts").write_text("a\n")
    assert message in fails(predict_ner, trained.model, "--input", "texts", "--device", "cpu", *words)


class Terminal:
    """Standard error that says it is a terminal."""

    def __init__(self):
        self.written = ""

    def write(self, text):
        self.written += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_progress_of_a_file_is_shown_in_bytes_on_a_terminal(trained, corpus, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert run(trained, "--input", corpus.dev, "--output", tmp_path / "found") == 0
    assert "100%" in terminal.written and "B/s" in terminal.written
    size = os.path.getsize(corpus.dev)
    assert f"{size / 1000:.1f}k/{size / 1000:.1f}k" in terminal.written


def test_there_is_no_progress_bar_in_a_pipe(trained, corpus, tmp_path, capsys):
    assert run(trained, "--input", corpus.dev, "--output", tmp_path / "found") == 0
    assert capsys.readouterr().err == ""


def test_one_document_of_a_hundred_thousand_characters(trained, corpus, tmp_path):
    sentences = "".join(record["text"] for record in corpus.dev_records)
    text = (sentences * 100)[:100_000]
    (tmp_path / "in").write_text(text, encoding="utf-8")
    assert run(trained, "--input", tmp_path / "in", "--output", tmp_path / "out", "--html", tmp_path / "page") == 0
    record = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    assert record["text"] == text
    assert all(text[e["start"] : e["end"]] == e["text"] for e in record["entities"])
    # the same sentences come again and again, and so do their entities
    starts = [e["start"] for e in record["entities"]]
    assert len(starts) > 4000 and starts[-1] > 99_000
    assert max(b - a for a, b in zip(starts, starts[1:])) < 200
