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
    train, dev = read_demo_corpus()
    assert {kind for example in train + dev for kind in example["label"]} == set(ENTITY_TYPES)
    assert not {example["text"] for example in train + dev} & set(UNSEEN_SENTENCES)


def test_files_hold_the_first_examples(tmp_path):
    folder = tmp_path / "new" / "folder"
    paths = write_demo_corpus(folder, train_size=40, dev_size=20)
    assert paths == [folder / "train.jsonl", folder / "dev.jsonl"]
    for path, part in zip(paths, read_demo_corpus(train_size=40, dev_size=20)):
        assert [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] == part


@pytest.mark.parametrize("taken, folder", [(None, "."), ("train.jsonl", "."), ("dev.jsonl", "."), ("file", "file")])
def test_the_command_writes_the_files_and_overwrites_nothing(tmp_path, capsys, taken, folder):
    if taken:
        (tmp_path / taken).write_text("mine", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path / folder)]) == (2 if taken else 0)
    assert {path.name for path in tmp_path.iterdir()} == ({taken} if taken else {"train.jsonl", "dev.jsonl"})
    printed = capsys.readouterr()
    assert "give another FOLDER" in printed.err if taken else f"{tmp_path / 'train.jsonl'}: 2400" in printed.out
    assert not taken or (tmp_path / taken).read_text(encoding="utf-8") == "mine"
