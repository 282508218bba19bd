"""The demo corpus: format, annotation, and what train and dev do not share."""

import hashlib
import json
from collections import Counter

import pytest

from tasks.ner.demo import ENTITY_TYPES, UNSEEN_SENTENCES, read_demo_corpus, write_demo_corpus
from tests.verbs import verb

make_demo_corpus = verb("demo", "ner")


@pytest.fixture(scope="module")
def corpus():
    return read_demo_corpus()


@pytest.fixture(scope="module")
def both(corpus):
    return corpus[0] + corpus[1]


def spans_of(example):
    """All ``(start, end, type)`` of an example, end inclusive."""
    return [
        (start, end, kind)
        for kind, surfaces in example["label"].items()
        for spans in surfaces.values()
        for start, end in spans
    ]


def surfaces_of(examples, kind):
    return {surface for example in examples for surface in example["label"].get(kind, ())}


def holds(outer, inner):
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def nested_pairs(example):
    """The ``(outer type, inner type)`` pairs of nested entities."""
    spans = spans_of(example)
    return [(outer[2], inner[2]) for outer in spans for inner in spans if holds(outer, inner)]


def find_unannotated(examples):
    """Occurrences of an annotated surface that are neither annotated nor inside a longer entity of the same type."""
    known = {kind: surfaces_of(examples, kind) for kind in ENTITY_TYPES}
    lengths = {kind: sorted(set(map(len, words))) for kind, words in known.items()}
    found = []
    for example in examples:
        text, spans = example["text"], spans_of(example)
        for kind, words in known.items():
            for length in lengths[kind]:
                for start in range(len(text) - length + 1):
                    if text[start : start + length] not in words:
                        continue
                    end = start + length - 1
                    if not any(s <= start and end <= e and k == kind for s, e, k in spans):
                        found.append((text, text[start : end + 1], kind))
    return found


def test_offsets_cut_the_surface_out_of_the_text_end_inclusive(both):
    for example in both:
        for surfaces in example["label"].values():
            for surface, spans in surfaces.items():
                assert spans and len(spans) == len(set(map(tuple, spans)))
                for start, end in spans:
                    assert 0 <= start <= end and example["text"][start : end + 1] == surface


def test_a_surface_that_occurs_twice_has_two_spans(corpus):
    for part in corpus:
        labels = [example["label"] for example in part]
        assert any(len(spans) > 1 for label in labels for words in label.values() for spans in words.values())


def test_the_corpus_stays_what_published_scores_were_measured_on(tmp_path):
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in write_demo_corpus(tmp_path)]
    assert digests == [
        "16b64f07fffe9756695ff13c9057e656f4ce8664108fadc6c32629b658a930e8",
        "12175789daf749927775dd62fb250fed28053d23d874d9e49c835c8728b6e5e5",
    ]


def test_sizes_are_as_asked_and_default_to_2400_and_400(corpus):
    assert [len(part) for part in corpus] == [2400, 400]
    assert [len(part) for part in read_demo_corpus(train_size=30, dev_size=7)] == [30, 7]


def test_every_type_occurs_often_in_both_parts(corpus):
    assert len(ENTITY_TYPES) == 6
    for part, least in zip(corpus, (500, 80)):
        counts = Counter(kind for example in part for _, _, kind in spans_of(example))
        assert set(counts) == set(ENTITY_TYPES)
        assert min(counts.values()) >= least


def test_train_has_hundreds_of_different_names_of_each_open_type(corpus):
    for kind in ("person", "place", "organization", "product"):
        assert len(surfaces_of(corpus[0], kind)) >= 500


def test_about_a_twentieth_of_the_sentences_has_no_entity(corpus):
    for part in corpus:
        assert 0.04 <= sum(not example["label"] for example in part) / len(part) <= 0.06


def test_sentences_have_10_to_60_characters(both):
    assert all(10 <= len(example["text"]) <= 60 for example in both)


def test_nested_entities_of_the_same_pairs_of_types_in_both_parts(corpus):
    train, dev = ({pair for example in part for pair in nested_pairs(example)} for part in corpus)
    assert train == dev
    assert {("organization", "place"), ("organization", "person"), ("organization", "product")} <= train
    assert {("organization", "organization"), ("product", "place"), ("place", "place")} <= train
    assert not any(outer in ("time", "position", "person") for outer, _ in train)
    for part in corpus:
        assert sum(bool(nested_pairs(example)) for example in part) / len(part) > 0.3


def test_entities_never_cross_and_no_two_types_share_a_span(both):
    for example in both:
        spans = spans_of(example)
        assert len({span[:2] for span in spans}) == len(spans)
        for a in spans:
            for b in spans:
                assert a == b or holds(a, b) or holds(b, a) or a[1] < b[0] or b[1] < a[0], example


def test_no_sentence_occurs_twice_and_the_unseen_ones_do_not_occur(both):
    texts = {example["text"] for example in both}
    assert len(texts) == len(both) and len(UNSEEN_SENTENCES) == 3 and not texts & {*UNSEEN_SENTENCES}


@pytest.mark.parametrize("kind", ("person", "place", "organization", "product"))
def test_no_dev_name_occurs_anywhere_in_train(corpus, kind):
    train, dev = corpus
    assert not surfaces_of(train, kind) & surfaces_of(dev, kind)
    train_text = "\n".join(example["text"] for example in train)
    assert [surface for surface in surfaces_of(dev, kind) if surface in train_text] == []


def test_no_entity_name_occurs_without_annotation(both):
    assert find_unannotated(both) == []


def test_the_annotation_check_sees_a_missing_inner_entity_and_a_missing_occurrence():
    place = {"text": "我在青川。", "label": {"place": {"青川": [[2, 3]]}}}
    hospital = {"text": "青川医院很大。", "label": {"organization": {"青川医院": [[0, 3]]}}}
    twice = {"text": "青川就是青川。", "label": {"place": {"青川": [[0, 1]]}}}
    assert find_unannotated([place]) == []
    assert [word for _, word, _ in find_unannotated([place, hospital])] == ["青川"]
    assert [word for _, word, _ in find_unannotated([twice])] == ["青川"]


def test_files_hold_the_generated_examples_as_readable_json_lines(tmp_path):
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


@pytest.mark.parametrize("name", ["train.jsonl", "dev.jsonl"])
def test_tool_does_not_overwrite_a_file(tmp_path, capsys, name):
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path)]) == 2
    assert "is not empty; give another FOLDER" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_tool_says_when_the_folder_is_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert make_demo_corpus.main([str(tmp_path / "file")]) == 2
    assert "give another FOLDER" in capsys.readouterr().err
