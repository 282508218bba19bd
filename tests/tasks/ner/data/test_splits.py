"""Train, dev and test of a run; overlapping entities."""

import itertools
import json
import random

import numpy as np
import pytest
import train_ner
import yaml

from tasks import recipes
from tasks.common.errors import InputError
from tasks.common.training.memory import IN_MEMORY
from tasks.common.training.splits import hold_out
from tasks.ner.arguments import NerArguments
from tasks.ner.data.splits import draw, has_overlap, read_splits
from tasks.ner.examples import Entity, Example, without_overlaps
from tests.tasks.ner.conftest import TINY


def examples_of(texts):
    return [Example(text, (), f"file:{number}") for number, text in enumerate(texts, 1)]


@pytest.fixture
def examples():
    """200 texts, every fifth of them twice."""
    texts = [f"text {number}" for number in range(200)]
    return examples_of(texts + texts[::5])


# ---- the part that is held out


@pytest.mark.parametrize("fraction", [1e-9, 0.01, 0.1, 0.25, 0.5, 0.9, 0.999])
def test_parts_have_no_text_in_common_and_are_all_there_is_in_its_order(examples, fraction):
    rest, held = hold_out(examples, fraction)
    assert not {example.text for example in rest} & {example.text for example in held}
    assert sorted(rest + held, key=examples.index) == examples
    for part in (rest, held):
        assert part == sorted(part, key=examples.index)
    assert len({example.text for example in held}) == min(199, max(1, round(200 * fraction)))


def test_cut_is_always_the_same(examples, monkeypatch):
    rest, held = hold_out(examples, 0.1)
    random.seed(5)
    assert hold_out(examples, 0.1) == (rest, held)
    shuffled = random.sample(examples, len(examples))
    assert {example.text for example in hold_out(shuffled, 0.1)[1]} == {example.text for example in held}
    assert {example.text for example in hold_out(examples, 0.3)[1]} >= {example.text for example in held}


def test_cut_does_not_touch_the_random_numbers_of_training(examples):
    before = np.random.get_state()[1].copy()
    hold_out(examples, 0.1)
    assert (np.random.get_state()[1] == before).all()


@pytest.mark.parametrize("texts", [["one"], ["one", "one"]])
def test_one_text_cannot_be_cut(texts):
    with pytest.raises(InputError, match=r"^file:1: one text cannot be cut in two; give a dev_file$"):
        hold_out(examples_of(texts), 0.5)


@pytest.mark.slow
def test_run_without_a_dev_file_holds_a_part_out(train, few_texts, tmp_path, without_pictures, capsys):
    runs = []
    for seed in (1, 2):
        runs.append(train(tmp_path / f"run{seed}", train_file=few_texts.train, dev_file="", dev_fraction=0.2,
                          num_train_epochs=1, seed=seed))  # fmt: skip
    printed = capsys.readouterr().out
    assert printed.count("dev is drawn from all of") == 2
    assert printed.count("train: 36 texts") == printed.count("dev: 9 texts") == 2
    texts = [
        [json.loads(line)["text"] for line in (run.folder / "predictions_dev.jsonl").read_text("utf-8").splitlines()]
        for run in runs
    ]
    assert texts[0] == texts[1]
    all_texts = [json.loads(line)["text"] for line in few_texts.train.read_text("utf-8").splitlines()]
    assert [text for text in all_texts if text in texts[0]] == texts[0]


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


def test_dev_of_cut_documents_is_the_end_and_both_shares_are_said(documents, capsys):
    assert held_of(documents) == documents[-30:]
    printed = capsys.readouterr().out
    assert "dev is the end of train" in printed and "100.0 %" in printed and "0.0 %" in printed


def test_dev_of_independent_texts_is_drawn_as_before(documents, capsys):
    shuffled = random.Random(3).sample(documents, len(documents))
    before = hold_out(shuffled, 0.1, "stratified", lambda example: ["name"])[1]
    assert held_of(shuffled) == before
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


def test_run_on_one_text_without_a_dev_file_is_an_error(fails, config_file, few_texts, tmp_path):
    line = few_texts.train.read_text("utf-8").splitlines()[0]
    (tmp_path / "one.jsonl").write_text(f"{line}\n{line}\n", "utf-8")
    message = fails(train_ner, config_file, "--output_dir", "run", "--train_file", "one.jsonl", "--dev_file=")
    assert message == "one.jsonl:1: one text cannot be cut in two; give a dev_file"


def test_held_out_part_without_entities_is_named(fails, config_file, tmp_path):
    line = '{"text": "%s", "label": {%s}}\n'
    content = line % ("张三在北京", '"place": {"北京": [[3, 4]]}') + line % ("天气好", "")
    kinds = {"张三在北京": ["place"], "天气好": []}
    held = hold_out(examples_of(kinds), 0.5, "stratified", lambda example: kinds[example.text])[1]
    (tmp_path / "two.jsonl").write_text(content, "utf-8")
    message = fails(train_ner, config_file, "--output_dir", "run", "--train_file", "two.jsonl", "--dev_file=")
    where = "the 0.1 of two.jsonl that is held out" if held[0].text == "天气好" else "two.jsonl"
    assert message == f"{where}: no entity is labeled in it; give data with entities"


def test_test_file_without_entities_is_told(few_texts, tmp_path, capsys):
    (tmp_path / "test.jsonl").write_text('{"text": "天气好", "label": {}}\n', "utf-8")
    read_splits(NerArguments(train_file=str(few_texts.train), test_file=str(tmp_path / "test.jsonl")), 7)
    assert f"{tmp_path}/test.jsonl: no entity is labeled" in capsys.readouterr().err


# ---- some of the training texts


def test_fewer_texts_are_among_more_and_the_seed_decides(examples):
    ten, fifty = draw(examples, 10, 1), draw(examples, 50, 1)
    assert len({example.where for example in fifty}) == 50
    assert [example for example in fifty if example in ten] == ten
    assert fifty == sorted(fifty, key=lambda example: int(example.where[5:]))
    assert draw(examples, 50, 2) != fifty and draw(examples, 50, 1) == fifty
    assert draw(examples, len(examples), 3) == examples


def test_dev_is_held_out_of_the_drawn_texts_and_files_are_whole(few_texts, capsys):
    keys = NerArguments(train_file=str(few_texts.train), test_file=str(few_texts.dev), train_texts=20)
    splits = read_splits(keys, 7)
    assert "train_texts: 20 of the 45 texts of" in capsys.readouterr().out
    assert {split: len(examples) for split, examples in splits.items()} == {"train": 18, "dev": 2, "test": 10}
    whole = read_splits(NerArguments(train_file=str(few_texts.train), dev_fraction=0), 7)["train"]
    assert sorted(splits["train"] + splits["dev"], key=whole.index) == draw(whole, 20, 7)
    keys.dev_file, keys.test_file = keys.test_file, None
    assert {split: len(examples) for split, examples in read_splits(keys, 7).items()} == {"train": 20, "dev": 10}


def test_more_texts_than_there_are_cannot_be_drawn(few_texts):
    keys = NerArguments(train_file=str(few_texts.train), train_texts=46)
    with pytest.raises(InputError, match=r"^train_texts 46: .*train.jsonl has only 45 texts; give a smaller number$"):
        read_splits(keys, 7)


def test_the_same_texts_in_memory_are_drawn(few_texts):
    keys = NerArguments(train_file=str(few_texts.train), train_texts=20)
    splits = read_splits(keys, 7)
    whole = read_splits(NerArguments(train_file=str(few_texts.train), dev_fraction=0), 7)["train"]
    keys.train_file = IN_MEMORY
    assert read_splits(keys, 7, {"train": whole}) == splits


@pytest.mark.slow
def test_runs_of_several_seeds_have_other_texts_and_no_score_together(few_texts, tmp_path, without_pictures):
    files = {"train_file": str(few_texts.train), "dev_file": str(few_texts.dev), "output_dir": str(tmp_path / "runs")}
    config = {"recipe": "ner", **files, "train_texts": 30, **TINY, "num_train_epochs": 1}
    summary = recipes.train({**config, "seeds": "1,2"})
    assert summary["runs"] == 2 and "ensemble" not in summary["scores"]["dev.f1"]
    folders = [tmp_path / "runs" / f"seed_{seed}" for seed in (1, 2)]
    configs = [yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")) for folder in folders]
    assert [config["train_texts"] for config in configs] == [30, 30]
    vocabularies = [(folder / "model" / "vocab.txt").read_bytes() for folder in folders]
    assert vocabularies[0] != vocabularies[1]


# ---- overlaps


def overlap(first, second):
    return bool(set(range(first[0], first[1])) & set(range(second[0], second[1])))


def random_spans(chosen, longest, count):
    spans = set()
    for _ in range(chosen.randrange(count)):
        start = chosen.randrange(longest)
        spans.add((start, chosen.randrange(start, longest) + 1, chosen.choice("AB")))
    return sorted(spans)


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


def test_without_overlaps_goes_by_the_score_then_by_the_place():
    assert without_overlaps([Entity(0, 3, "A", 1.0), Entity(2, 5, "B", 3.0), Entity(4, 6, "C", 2.0)]) == [
        Entity(2, 5, "B", 3.0)
    ]
    chain = [Entity(0, 2, "A", 1.0), Entity(1, 3, "A", 2.0), Entity(2, 4, "A", 3.0)]
    assert without_overlaps(chain) == [chain[0], chain[2]], "what is left out itself takes nothing"
    equal = [Entity(0, 2, "B", 1.0), Entity(0, 2, "A", 1.0), Entity(1, 3, "A", 1.0)]
    assert without_overlaps(equal) == [equal[1]]


def test_without_overlaps_leaves_neighbors_and_no_entities():
    assert without_overlaps([]) == []
    entities = [Entity(2, 4, "A", 1.0), Entity(0, 2, "A", 2.0)]
    assert without_overlaps(entities) == sorted(entities)


FLAT = '{"text": "张三在北京市", "label": {"place": {"北京市": [[3, 5]]}}}\n'
NESTED = FLAT.replace("]]}}", ']], "北京": [[3, 4]]}}')


@pytest.mark.parametrize(
    "content, words, expected",
    [
        (FLAT, {}, False),
        (NESTED, {}, True),
        (FLAT, {"allow_overlap": "true"}, True),
        (NESTED, {"allow_overlap": "false"}, False),
    ],
)
def test_entities_may_overlap_as_in_train_unless_told(train, tmp_path, without_pictures, content, words, expected):
    for name in ("train", "dev"):
        (tmp_path / name).write_text(content * 3, "utf-8")
    files = {"train_file": tmp_path / "train", "dev_file": tmp_path / "dev"}
    run = train(tmp_path / "run", num_train_epochs=1, **files, **words)
    assert run.model_config["allow_overlap"] is expected
    assert run.config["allow_overlap"] == (expected if words else None)


@pytest.mark.slow
@pytest.mark.parametrize("allow_overlap", [True, False])
def test_scores_of_a_run_and_of_its_model_heed_allow_overlap(
    train, few_texts, predict, tmp_path, without_pictures, allow_overlap
):
    files = {"train_file": few_texts.train, "dev_file": few_texts.train}
    options = {"learning_rate": 1e-2, "num_train_epochs": 10, "allow_overlap": allow_overlap}
    run = train(tmp_path / "run", **files, **options)
    lines = (run.folder / "predictions_dev.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    spans = [[(entity["start"], entity["end"]) for entity in record["entities"]] for record in records]
    assert any(overlap(a, b) for of_text in spans for a, b in itertools.combinations(of_text, 2)) == allow_overlap
    assert sum(map(len, spans)) == run.metrics["dev"]["predicted"] > 0
    found = predict("\n".join(record["text"] for record in records), run.model)
    assert [[(entity["start"], entity["end"]) for entity in record["entities"]] for record in found] == spans
