"""Train, dev and test of a run; overlapping entities."""

import itertools
import random
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.training.memory import IN_MEMORY
from tasks.common.training.splits import hold_out
from tasks.ner.arguments import NerArguments
from tasks.ner.data.splits import draw, has_overlap, mark_types, read_splits
from tasks.ner.examples import Entity, Example, without_overlaps


def splits_of(**keys):
    return read_splits(NerArguments(**keys), 7)


# ---- the part that is held out


@pytest.fixture
def documents():
    """30 documents of ten texts each; a name occurs in all texts of a document and in no other."""
    texts = [(f"name{document:02}", number) for document in range(30) for number in range(10)]
    return [
        Example(f"{name} {number}", (Entity(0, 6, "name"),), f"file:{line}")
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
    assert held_of(shuffled) == hold_out(shuffled, 0.1, "stratified", lambda example: ["name"])[1]
    assert "dev is drawn from all of train" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["stratified", "random", "contiguous"])
def test_a_given_dev_split_is_taken(documents, way):
    assert held_of(documents, dev_split=way) == hold_out(documents, 0.1, way, lambda example: ["name"])[1]


@pytest.mark.parametrize("entities", [(), (Entity(0, 6, "rare"),)])
def test_the_end_is_not_held_out_where_train_would_lack_its_types_or_dev_has_none(documents, entities, capsys):
    end = [Example(example.text, entities, example.where) for example in documents[-30:]]
    held = held_of(documents[:-30] + end)
    assert held != end and {entity.type for example in held for entity in example.entities} >= {"name"}
    assert "note: dev is drawn from all of train" in capsys.readouterr().out


def test_files_without_entities_are_told_or_refused(few_texts, write, capsys):
    test = write('{"text": "天气好", "label": {}}\n', "test.jsonl")
    splits_of(train_file=str(few_texts.train), test_file=str(test))
    assert f"{test}: no entity is labeled" in capsys.readouterr().err
    with pytest.raises(InputError, match="test.jsonl: no entity is labeled"):
        splits_of(train_file=str(few_texts.train), dev_file=str(test))
    line = few_texts.train.read_text("utf-8").splitlines()[0]
    two = write(f'{line}\n{{"text": "天气好", "label": {{}}}}\n', "two.jsonl")
    with pytest.raises(InputError, match="two.jsonl.*: no entity is labeled"):  # one part has none, whichever it is
        splits_of(train_file=str(two), dev_fraction=0.5)


# ---- some of the training texts


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
    with pytest.raises(InputError, match=r"^train_texts 46: .*train.jsonl has only 45 texts"):
        splits_of(train_file=train, train_texts=46)


# ---- types that a trained model knows


@pytest.mark.parametrize("allow_overlap, marked", [(True, {"old": 4}), (False, {"old": 2})])
def test_a_model_marks_the_types_that_nobody_labeled_and_gives_way_to_labels(allow_overlap, marked):
    def find(texts):
        return [
            [Entity(0, 3, "old", 2.0, 0.9), Entity(0, 1, "known", 1.0, 0.7), Entity(3, 5, "old", 1.0, 0.7)]
            for _ in texts
        ]

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


# ---- overlaps


def overlap(first, second):
    return bool(set(range(first[0], first[1])) & set(range(second[0], second[1])))


def random_spans(chosen, longest, count):
    starts = [chosen.randrange(longest) for _ in range(chosen.randrange(count))]
    return sorted({(start, chosen.randrange(start, longest) + 1, chosen.choice("AB")) for start in starts})


def test_overlap_is_found_where_two_entities_share_a_character():
    chosen, answers = random.Random(1), []
    for _ in range(300):
        spans = random_spans(chosen, 30, 6)
        expected = any(overlap(a, b) for a, b in itertools.combinations(spans, 2))
        entities = [Entity(*span) for span in chosen.sample(spans, len(spans))]
        plain = Example("x" * 30, [Entity(0, 2, "A"), Entity(2, 3, "A")], "file:1")
        assert has_overlap([plain, Example("x" * 30, entities, "file:2")]) == expected
        answers.append(expected)
    assert 30 < sum(answers) < 270
    assert has_overlap([Example("xx", [Entity(0, 2, "A"), Entity(0, 2, "B")], "file:1")])


def test_without_overlaps_takes_the_best_that_is_free_as_long_as_there_is_one():
    chosen = random.Random(2)
    for _ in range(300):
        entities = [Entity(*span, chosen.choice([0.5, 1.0, 2.0, 3.0])) for span in random_spans(chosen, 20, 10)]
        expected, left = [], list(entities)
        while left:
            best = min(left, key=lambda entity: (-entity[3], entity))
            expected.append(best)
            left = [entity for entity in left if not overlap(entity, best)]
        assert without_overlaps(chosen.sample(entities, len(entities))) == sorted(expected)


FLAT = '{"text": "张三在北京市", "label": {"place": {"北京市": [[3, 5]]}}}\n'
NESTED = FLAT.replace("]]}}", ']], "北京": [[3, 4]]}}')


@pytest.mark.parametrize(
    "content, words, expected", [(FLAT, {}, False), (NESTED, {}, True), (NESTED, {"allow_overlap": "false"}, False)]
)
def test_entities_may_overlap_as_in_train_unless_told(train, write, tmp_path, content, words, expected):
    data = write(content * 3, "data.jsonl")
    run = train(tmp_path / "run", num_train_epochs=1, train_file=data, dev_file=data, **words)
    assert run.model_config["allow_overlap"] is expected and run.config["allow_overlap"] == (
        expected if words else None
    )


@pytest.mark.slow
@pytest.mark.parametrize("allow_overlap", [True, False])
def test_a_run_and_its_model_find_overlaps_only_where_they_may(train, few_texts, predict, tmp_path, allow_overlap):
    files = {"train_file": few_texts.train, "dev_file": few_texts.train}
    run = train(tmp_path / "run", **files, num_train_epochs=10, allow_overlap=allow_overlap)
    spans = [[(one["start"], one["end"]) for one in record["entities"]] for record in run.predictions]
    assert any(overlap(a, b) for of_text in spans for a, b in itertools.combinations(of_text, 2)) == allow_overlap
    assert sum(map(len, spans)) == run.metrics["dev"]["predicted"] > 0
    found = predict("\n".join(record["text"] for record in run.predictions), run.model)
    assert [[(one["start"], one["end"]) for one in record["entities"]] for record in found] == spans
