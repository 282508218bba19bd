"""The demo corpus: its bytes, which fix the annotation that was tested when it was generated; the command."""

import hashlib
import json

import pytest

from tasks.ner.demo import ENTITY_TYPES, UNSEEN_SENTENCES, read_demo_corpus, write_demo_corpus
from tests.helpers.verbs import verb

make_demo_corpus = verb("demo", "ner")


def test_the_corpus_stays_what_published_scores_were_measured_on(tmp_path):
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in write_demo_corpus(tmp_path)]
    assert digests == [
        "16b64f07fffe9756695ff13c9057e656f4ce8664108fadc6c32629b658a930e8",
        "12175789daf749927775dd62fb250fed28053d23d874d9e49c835c8728b6e5e5",
    ]


def test_types_and_unseen_sentences_are_those_of_the_corpus():
    train, dev = read_demo_corpus()
    assert [len(train), len(dev)] == [2400, 400]
    for part in (train, dev):
        assert {kind for example in part for kind in example["label"]} == set(ENTITY_TYPES)
    assert not {example["text"] for example in train + dev} & set(UNSEEN_SENTENCES)


def test_files_hold_the_first_examples_as_readable_json_lines(tmp_path):
    folder = tmp_path / "new" / "folder"
    paths = write_demo_corpus(folder, train_size=40, dev_size=20)
    assert paths == [folder / "train.jsonl", folder / "dev.jsonl"]
    assert sorted(folder.iterdir()) == sorted(paths)  # no temporary file is left
    for path, part in zip(paths, read_demo_corpus(train_size=40, dev_size=20)):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == part
        assert "\\u" not in "".join(lines)


def test_tool_prints_paths_and_counts(tmp_path, capsys):
    assert make_demo_corpus.main([str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    assert str(tmp_path / "demo" / "train.jsonl") + ": 2400 sentences" in printed
    assert all(kind in printed for kind in ENTITY_TYPES)


@pytest.mark.parametrize("given, folder", [("train.jsonl", "."), ("dev.jsonl", "."), ("file", "file")])
def test_tool_overwrites_nothing(tmp_path, capsys, given, folder):
    (tmp_path / given).write_text("mine", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path / folder)]) == 2
    assert "give another FOLDER" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [given]
    assert (tmp_path / given).read_text(encoding="utf-8") == "mine"
