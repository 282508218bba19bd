"""Documents, each a whole file."""

import json

import predict_ner
import pytest

from paddle_rope.__main__ import main
from tasks.common.errors import InputError
from tasks.common.texts.streams import FileStream


def test_each_file_is_one_text_with_its_lines(tmp_path):
    for name, content in (("a.txt", b"\xe7\x94\xb2\n\n\xe4\xb9\x99\r\n"), ("b.txt", b'{"text": 1}')):
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    chunks = list(FileStream(paths))
    assert [text for ((text, _),) in chunks] == ["甲\n\n乙\r\n", '{"text": 1}']
    assert [where for ((_, where),) in chunks] == [str(path) for path in paths]


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    with pytest.raises(InputError, match="a.txt:1: the file is empty"):
        list(FileStream([tmp_path / "a.txt"]))


def test_options_for_many_documents_are_refused(fails, trained):
    words = [trained.model, "--whole_files", "--input", "a.txt", "--processes", "2"]
    assert fails(predict_ner, *words).startswith("--processes: --whole_files reads one file after another")


def test_documents_of_several_files_are_predicted_whole(trained, corpus, tmp_path):
    texts = [record["text"] for record in corpus.dev_records]
    documents = ["\n".join(texts[:12]) + "\n", "\n".join(texts[12:20])]
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.txt").write_text(document, encoding="utf-8")
    words = ["--whole_files", "--input", *(str(tmp_path / f"{number}.txt") for number in range(2))]
    words += ["--output", str(tmp_path / "out"), "--html", str(tmp_path / "page"), "--device", "cpu"]
    assert main(["predict", str(trained.model), *words]) == 0
    records = [json.loads(line) for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()]
    assert [record["text"] for record in records] == documents
    assert all(record["entities"] for record in records)
    page = (tmp_path / "page").read_text(encoding="utf-8")
    assert page.count("<p ") == 20 and 'id="text2"' in page
