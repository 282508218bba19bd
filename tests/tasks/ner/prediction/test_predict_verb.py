"""paddle-rope predict: streams, formats, pages, progress, whole files."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import predict_ner
import pytest

from tasks.common.errors import InputError
from tasks.common.texts.streams import FileStream
from tasks.ner.data.reading import read_examples
from tests.tasks.ner.prediction.conftest import spans_of

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def records(predictor, dev_texts):
    return predictor(dev_texts)


@pytest.fixture
def run(trained, tmp_path):
    """Predict: ``run(source, *words)`` -> the content of the file that is written."""

    def run(source, *words):
        output = tmp_path / "found"
        words = ["--input", source, "--output", output, "--device", "cpu", *words]
        assert predict_ner.main([str(trained.model), *map(str, words)]) == 0
        return output.read_text(encoding="utf-8")

    return run


def json_lines(content):
    return [json.loads(line) for line in content.splitlines()]


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
    assert answers == predict("".join(lines))


def test_a_text_has_a_record_whatever_holds_it(run, records, dev_texts, tmp_path):
    rows = [{"text": text, "entities": []} for text in dev_texts]
    sources = {
        "a.txt": "".join(f"{text}\n" for text in dev_texts),
        "a.jsonl": "".join(json.dumps({**row, "id": 1}) + "\n" for row in rows),
        "a.json": json.dumps(rows),
        "a.csv": "text,id\n" + "".join(f'"{text}",1\n' for text in dev_texts),
        "a.json.gz": json.dumps(rows),
    }
    for name, content in sources.items():
        content = content.encode("utf-8")
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        found = json_lines(run(tmp_path / name))
        assert [one["text"] for one in found] == dev_texts and spans_of(found) == spans_of(records), name


def test_empty_lines_and_chunks_keep_their_place(run, dev_texts, records, tmp_path):
    (tmp_path / "in").write_text("\n" + "\n\n".join(dev_texts) + "\n\n", encoding="utf-8")
    found = json_lines(run(tmp_path / "in", "--batch_size", 1))  # 32 texts are read together
    assert [record["text"] for record in found] == ["", *(line for text in dev_texts for line in (text, ""))]
    assert spans_of(found[1::2]) == spans_of(records) and not any(record["entities"] for record in found[::2])


@pytest.mark.parametrize("format", ["jsonl", "cluener", "doccano", "bio"])
def test_labeled_data_goes_in_and_comes_out(run, corpus, records, dev_texts, tmp_path, capsys, format):
    run(corpus.dev, "--format", format)
    examples, note = read_examples(tmp_path / "found"), capsys.readouterr().err
    assert [example.text for example in examples] == dev_texts
    found = {(row, *entity[:3]) for row, example in enumerate(examples) for entity in example.entities}
    every = {(row, *span) for row, spans in enumerate(spans_of(records)) for span in spans}
    assert found <= every and len(found) > 20
    assert (found < every and str(len(every - found)) in note) if format == "bio" else (found == every and not note)


@pytest.mark.parametrize("language, word", [("en", "probability"), ("zh", "概率")])
def test_the_page_holds_all_texts_and_entities(run, corpus, records, tmp_path, language, word):
    run(corpus.dev, "--html", tmp_path / "page.html", "--html_language", language)
    content = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'<html lang="{language}">' in content and word in content  # the model has temperatures
    assert content.count("<section") == len(records)
    whole = len(re.findall(r'<mark class="t\d+( goes-on-right)?"', content))  # of an entity in pieces the first
    assert whole == sum(map(len, spans_of(records)))


def test_the_name_of_a_file_need_not_be_utf_8(run, tmp_path):
    name = tmp_path / os.fsdecode(b"x\xff.txt")
    name.write_text("今天没有人。\n", encoding="utf-8")
    run(name, "--html", tmp_path / "page.html")
    assert "没有人。" in (tmp_path / "page.html").read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    "words, place",
    [
        (["--format", "xml"], "xml"),
        (["--html", "."], ".: is a folder"),
        (["--html", "no/page"], "no/page: cannot be written"),
        (["--html", "texts"], "texts: is the input"),
        (["--output", "a", "--html", "./a"], "./a: is the --output"),
        (["--overlap", "99"], "--overlap 99"),
        (["--input", "wrong.jsonl", "--output", "out", "--html", "page.html"], 'wrong.jsonl:2: "text"'),
        (["--whole_files", "--processes", "2"], "--processes"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(trained, fails, tmp_path, words, place):
    (tmp_path / "texts").write_text("a\n")
    (tmp_path / "wrong.jsonl").write_bytes(b'{"text": "a"}\n{"text": 1}\n')
    if "wrong.jsonl" not in words:
        words = ["--input", "texts", *words]
    assert place in fails(predict_ner, trained.model, "--device", "cpu", *words)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_in_bytes_is_shown_on_a_terminal_alone(run, corpus, monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    run(corpus.dev)
    size, shown = f"{os.path.getsize(corpus.dev) / 1000:.1f}k", capsys.readouterr().err
    assert (f"{size}/{size}" in shown and "B/s" in shown) if is_terminal else shown == ""


def test_one_document_of_a_hundred_thousand_characters(run, dev_texts, tmp_path):
    text = ("".join(dev_texts) * 100)[:100_000]
    (tmp_path / "in").write_text(text, encoding="utf-8")
    (record,) = json_lines(run(tmp_path / "in", "--html", tmp_path / "page"))
    assert record["text"] == text
    # the same sentences come again and again, and so do their entities
    starts = [entity["start"] for entity in record["entities"]]
    assert len(starts) > 4000 and starts[-1] > 99_000
    assert max(b - a for a, b in zip(starts, starts[1:])) < 200


def test_whole_files_are_documents_with_their_lines(run, dev_texts, tmp_path):
    documents = ["\n".join(dev_texts[:12]) + "\n", "\n".join(dev_texts[12:20])]
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.txt").write_text(document, encoding="utf-8")
    content = run(tmp_path / "0.txt", "--input", tmp_path / "1.txt", "--whole_files", "--html", tmp_path / "page")
    records = json_lines(content)
    assert [record["text"] for record in records] == documents and all(record["entities"] for record in records)
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert page.count("<p ") == 20 and 'id="text2"' in page


def test_a_whole_file_is_one_text_whatever_it_holds_and_an_empty_one_is_refused(tmp_path):
    contents = {"a.txt": "甲\n\n乙\r\n", "b.txt": '{"text": 1}', "c.txt": ""}
    paths = [tmp_path / name for name in contents]
    for path in paths:
        path.write_bytes(contents[path.name].encode())
    chunks = list(FileStream(paths[:2]))
    assert chunks == [[(contents[path.name], str(path))] for path in paths[:2]]
    with pytest.raises(InputError, match="c.txt:1: "):
        list(FileStream(paths[2:]))
