"""Labeled files and texts to predict; train, dev and test of a run; overlapping entities."""

import hashlib
import itertools
import json
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_rope.tasks.common.training.data import IN_MEMORY, hold_out, read_memory
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.data.reading import EntityTextStream, read_examples, read_labeled
from paddle_rope.tasks.ner.data.splits import draw, mark_types, read_splits
from paddle_rope.tasks.ner.demo import ENTITY_TYPES, UNSEEN_SENTENCES, read_demo_corpus, write_demo_corpus
from paddle_rope.tasks.ner.examples import Entity, Example, first_overlap, without_overlaps
from paddle_rope.tasks.ner.formats.source import OTHER_TEXT, UNREADABLE, UNRELATED, Faults
from tests.helpers.runs import read_json_lines
from tests.tasks.conftest import FILES
from tests.tasks.ner.conftest import contents, error_of, read_texts


@pytest.mark.parametrize("name, place", [
    ("missing.txt", "missing.txt: no such file"),
    ("", "check the path"),
    ("a\x00b", "check the path"),
    (".", ".: is a directory"),
    ("data/ner/weibo/weiboNER_2nd_conll.train", "paddle-rope download weibo downloads it"),
    ("x y/ner/cluener/dev.json", "paddle-rope download cluener --output 'x y' downloads it"),
    ("cluener", "paddle-rope download cluener downloads it"),
])  # fmt: skip
def test_what_is_no_file_is_named_with_the_remedy(tmp_path, monkeypatch, name, place):
    monkeypatch.chdir(tmp_path)
    assert place in error_of(read_examples, name)
    if "download" not in place:
        assert place in error_of(read_texts, name)
    assert "download" not in error_of(read_examples, "data/ner/cluener/mine.json")


@pytest.mark.parametrize("content, expected", FILES["texts"])
def test_texts_are_lines_or_those_of_records_and_labeled_data_with_their_place(write, content, expected):
    path = write(content)  # those that are refused: tests/tasks/files.yaml
    assert read_texts(path) == [(text, f"{path}:{line}") for text, line in expected]


@pytest.mark.parametrize("format", FILES["faulty"])
def test_wrong_annotations_are_left_out_and_counted_by_kind_if_asked_to(write, caplog, format):
    content, counts = FILES["faulty"][format]
    path, faults = write(content), Faults()
    error_of(read_examples, path)
    read = [read_examples(path, on_error="skip"), read_labeled(path, None, None, faults)[0]]
    assert list(map(contents, read)) == 2 * [[("甲乙", (Entity(0, 1, "a"),))]]
    assert list(faults.counts.values()) == counts
    told = [f"{path}: left out {count} {kind}; the first: " for kind, count in faults.counts.items()]
    assert all(sum(message.startswith(one) for message in caplog.messages) == 1 for one in told)


def test_a_file_of_which_no_text_is_left_is_refused_with_the_first_fault(write):
    path = write('{"text": "甲"}\n')
    assert "'skp': must be stop or skip" in error_of(read_examples, path, None, None, "skp")
    message = error_of(read_examples, path, None, None, "skip")
    assert message.startswith(f"{path}: no text is left in it; {path}:1: ")


def test_wrong_annotations_of_brat_are_left_out_with_their_relations(write):
    write("甲乙\n丙", "docs/a.txt")
    lines = "T1\tx 0 1;3 4\t甲 丙\nT2\tx 1 4\t乙 丙\nT3\tx 0 2\t甲丙\n丙\n"
    lines += "R1\tr Arg1:T2 Arg2:T3\nR2\tr Arg1:T2 Arg2:T9\n"
    folder, faults = write(lines, "docs/a.ann").parent, Faults()
    (one,), _ = read_labeled(folder, None, None, faults)
    assert (one.entities, one.relations) == ((Entity(1, 4, "x"),), ())
    assert faults.counts == {OTHER_TEXT: 1, UNREADABLE: 1, UNRELATED: 1}


def test_files_and_memory_are_read_with_the_keys_that_are_named(write, caplog):
    marks = [{"from": 0, "to": end, "kind": "PER"} for end in (2, 9)]
    record = {"body": "王明", "text": "甲", "marks": marks}
    keys = {"fields": "text=body,spans=marks,start=from,end=to,type=kind", "on_error": "skip"}
    path = str(write(json.dumps(record)))
    of_file = splits_of(train_file=path, dev_fraction=0, **keys)["train"]
    of_memory = read_memory({"train": [record]}, NerPredictor.labeled, keys).examples["train"]
    expected = [("王明", (Entity(0, 2, "PER"),))]
    assert contents(of_file) == contents(of_memory) == expected
    assert [message.split(":")[0] for message in caplog.messages] == [path, "train"]
    assert list(EntityTextStream(path, fields="text=body")) == [[("王明", f"{path}:1")]]
    wrong = error_of(NerArguments(**{**keys, "fields": "txt=body"}).check, {})
    assert "'txt=body'; did you mean 'text'?" in wrong


def test_names_of_tags_that_are_numbers_are_read_from_the_file_beside(write, tmp_path):
    path = write('{"tokens": ["王", "明"], "ner_tags": [1, 2]}\n', "data/train.jsonl")
    assert "write_to_directory" in error_of(read_examples, path)
    info = {"features": {"id": {"dtype": "string"}, "ner_tags": {"feature": {"names": ["O", "B-PER", "I-PER"]}}}}
    write(json.dumps(info), "data/dataset_info.json")
    for data in (path, path.parent):
        assert read_examples(data)[0].entities == (Entity(0, 2, "PER"),)
    write("[]", "data/dataset_info.json")
    assert error_of(read_examples, path).startswith(f"{path.parent}/dataset_info.json: ")


def test_the_demo_corpus_stays_what_published_scores_were_measured_on(tmp_path):
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in write_demo_corpus(tmp_path / "new")]
    assert digests == [
        "16b64f07fffe9756695ff13c9057e656f4ce8664108fadc6c32629b658a930e8",
        "12175789daf749927775dd62fb250fed28053d23d874d9e49c835c8728b6e5e5",
    ]
    train, dev = read_demo_corpus()
    assert {kind for example in train + dev for kind in example["label"]} == set(ENTITY_TYPES)
    assert not {example["text"] for example in train + dev} & set(UNSEEN_SENTENCES)
    write_demo_corpus(tmp_path, train_size=40, dev_size=0)
    assert read_json_lines(tmp_path / "train.jsonl") == train[:40]


def splits_of(**keys):
    return read_splits(NerArguments(**keys), 7)


@pytest.fixture
def documents():
    """30 documents of ten texts each; a name occurs in all texts of a document and in no other."""
    texts = [(f"name{document:02}", number) for document in range(30) for number in range(10)]
    return [
        Example(f"{name} {number}", (Entity(0, 6, "name" if number % 2 else "other"),), f"file:{line}")
        for line, (name, number) in enumerate(texts, 1)
    ]


def held_of(examples, **keys):
    """What is held out for dev of examples in memory."""
    return read_splits(NerArguments(train_file=IN_MEMORY, **keys), 7, {"train": examples})["dev"]


def test_dev_of_cut_documents_is_the_end_and_dev_of_independent_texts_is_drawn(documents, capsys):
    assert held_of(documents) == documents[-30:]
    printed = capsys.readouterr().out
    assert "dev is the end of train" in printed and "100.0 %" in printed and "0.0 %" in printed
    shuffled = random.Random(3).sample(documents, len(documents))
    assert held_of(shuffled) == hold_out(shuffled, 0.1, "stratified", lambda example: [example.entities[0].type])[1]
    assert "dev is drawn from all of train" in capsys.readouterr().out
    assert held_of(shuffled, dev_split="contiguous") == shuffled[-30:]


@pytest.mark.parametrize("entities", [(), (Entity(0, 6, "rare"),)])
def test_the_end_is_not_held_out_where_train_would_lack_its_types_or_dev_has_none(documents, entities, capsys):
    end = [Example(example.text, entities, example.where) for example in documents[-30:]]
    held = held_of(documents[:-30] + end)
    assert held != end and {entity.type for example in held for entity in example.entities} >= {"name"}
    assert "note: dev is drawn from all of train" in capsys.readouterr().out


def test_fewer_texts_are_among_more_and_the_seed_decides():
    examples = [Example(f"text {number}", (), f"file:{number}") for number in range(240)]
    ten, fifty = draw(examples, 10, 1), draw(examples, 50, 1)
    assert len({example.where for example in fifty}) == 50 and [one for one in fifty if one in ten] == ten
    assert fifty == sorted(fifty, key=lambda example: int(example.where[5:]))
    assert draw(examples, 50, 2) != fifty == draw(examples, 50, 1) and draw(examples, 240, 3) == examples


def test_dev_is_held_out_of_the_drawn_texts_and_files_are_whole(few_texts, capsys):
    train, dev = str(few_texts.train), str(few_texts.dev)
    splits = splits_of(train_file=train, test_file=dev, train_texts=20)
    assert "train_texts: 20 of the 45 texts of" in capsys.readouterr().out
    assert {split: len(examples) for split, examples in splits.items()} == {"train": 18, "dev": 2, "test": 10}
    whole = splits_of(train_file=train, dev_fraction=0)["train"]
    assert sorted(splits["train"] + splits["dev"], key=whole.index) == draw(whole, 20, 7)
    of_file = splits_of(train_file=train, dev_file=dev, train_texts=20)
    assert {split: len(examples) for split, examples in of_file.items()} == {"train": 20, "dev": 10}
    in_memory = NerArguments(train_file=IN_MEMORY, test_file=dev, train_texts=20)
    assert read_splits(in_memory, 7, {"train": whole}) == splits
    message = error_of(splits_of, train_file=train, train_texts=46)
    assert message.startswith("train_texts 46: ") and "train.jsonl has only 45 texts" in message


@pytest.mark.parametrize("allow_overlap, marked", [(True, {"old": 4}), (False, {"old": 2})])
def test_a_model_marks_the_types_that_nobody_labeled_and_gives_way_to_labels(allow_overlap, marked):
    def find(texts):
        entities = Entity(0, 3, "old", 2.0, 0.9), Entity(0, 1, "known", 1.0, 0.7), Entity(3, 5, "old", 1.0, 0.7)
        return [[*entities] for _ in texts]

    config = SimpleNamespace(allow_overlap=allow_overlap)
    predictor = SimpleNamespace(types=["known", "old"], find=find, model=SimpleNamespace(config=config))
    new, known = Entity(2, 3, "new"), Entity(1, 2, "known")
    splits = {split: [Example("abcde", (one,), split)] for split, one in (("train", new), ("dev", known))}
    splits["test"] = [Example("abcde", (), "test")]
    assert mark_types(splits, predictor) == marked
    found = [Entity(0, 3, "old"), Entity(3, 5, "old")][not allow_overlap :]
    assert [splits["train"][0].entities, splits["dev"][0].entities, splits["test"][0].entities] == [
        *(tuple(sorted([one, *found])) for one in (new, known)), (),
    ]  # fmt: skip


def overlap(first, second):
    return bool(set(range(first[0], first[1])) & set(range(second[0], second[1])))


SPAN = st.builds(lambda at, size, kind, score: Entity(at, at + size, kind, score), st.integers(0, 20),
                 st.integers(1, 8), st.sampled_from("AB"), st.sampled_from([0.5, 1.0, 2.0]))  # fmt: skip
SPANS = st.lists(SPAN, max_size=6, unique_by=lambda entity: entity[:3])


@given(SPANS)
def test_overlaps_are_found_and_the_best_that_is_free_is_taken_as_long_as_it_is(entities):
    expected = any(overlap(a, b) for a, b in itertools.combinations(entities, 2))
    assert bool(first_overlap(sorted(entities))) == expected
    kept, left = [], list(entities)
    while left:
        kept.append(min(left, key=lambda entity: (-entity[3], entity)))
        left = [entity for entity in left if not overlap(entity, kept[-1])]
    assert without_overlaps(entities) == sorted(kept)


def test_entities_may_not_overlap_where_none_does_in_train(train, write, tmp_path):
    data = write('{"text": "在北京市", "label": {"place": {"北京市": [[1, 3]]}}}\n' * 3, "data.jsonl")
    run = train(tmp_path / "run", num_train_epochs=1, train_file=data, dev_file=data)
    assert run.model_config["allow_overlap"] is False and run.config["allow_overlap"] is None
