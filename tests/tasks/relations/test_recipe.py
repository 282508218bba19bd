"""What the recipe of relations adds to the recipe of entities: windows, thresholds, pages, and the log."""

import json
import random
import re
from collections import Counter

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner.arguments import of_types
from paddle_rope.tasks.ner.batching import NerDataset
from paddle_rope.tasks.ner.calibration import above_thresholds, common_threshold
from paddle_rope.tasks.ner.data.inspection import inspect
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Entity, make_example, relation_types
from paddle_rope.tasks.ner.metrics import entity_scores
from paddle_rope.tasks.recipes import load, train_config
from paddle_rope.tasks.relations.decoding import RELATED, Related, Triple
from paddle_rope.tasks.relations.demo import sentences
from paddle_rope.tasks.relations.metrics import Gold
from tests.helpers.models import export, like
from tests.helpers.runs import read_json_lines


def test_the_demo_corpus_has_every_relation_often_and_other_names_in_dev():
    train, dev = sentences("train", 600), sentences("dev", 200)
    counts, of_dev = (Counter(one["type"] for made in some for one in made["relations"]) for some in (train, dev))
    assert min(counts.values()) > 80 and counts.keys() == of_dev.keys() and len(counts) == 6
    names = [{entity["text"] for one in some for entity in one["entities"]} for some in (train, dev)]
    assert not names[0] & names[1]
    assert any(not one["relations"] for one in train) and train[:5] == sentences("train", 5)
    for one in train + dev:
        assert all(one["text"][e["start"] : e["end"]] == e["text"] for e in one["entities"])


@pytest.fixture
def long_example():
    """Ten entities in a long text, each related to the next one, and the last one to the first."""
    text = "".join(f"甲{number}在某地，" for number in range(10))
    entities = [Entity(place, place + 2, "a") for place in range(0, len(text), 6)]
    pairs = [*zip(entities, entities[1:]), (entities[-1], entities[0]), (entities[3], entities[3])]
    return make_example(text, entities, "long:1", [(*pair, "r") for pair in pairs])


def test_a_window_has_the_pairs_whose_entities_it_contains_and_others_are_counted(long_example):
    tokenizer = CharTokenizer.from_corpus([long_example.text])
    whole = NerDataset([long_example], tokenizer, ["a"], relations=["r", "s"])
    assert (whole.pairs, whole.parted, len(whole.texts[0].pairs)) == (11, 0, 11)
    cut = NerDataset([long_example], tokenizer, ["a"], 20, relations=["r", "s"])
    together = {tuple(piece.offsets[token] for token in pair[1:]) for piece in cut.texts for pair in piece.pairs}
    assert cut.pairs == 11 and cut.parted == 11 - len(together) and 1 < cut.parted < 11
    batch = cut.collate(cut.texts)
    assert batch["pairs"].shape[::2] == (len(cut.texts), 5) and (batch["pairs"][:, :, 0] <= 0).all()
    for text, pairs in zip(cut.texts, batch["pairs"]):
        spans = {span[1:3] for span in text.spans}
        for kind, *tokens in pairs.tolist():
            assert kind == -1 or {tuple(tokens[:2]), tuple(tokens[2:])} <= spans
    unknown = NerDataset([long_example], tokenizer, ["a"], relations=["s"])
    assert unknown.pairs == 0 and unknown.collate(unknown.texts)["pairs"].tolist() == [[[-1] * 5]]


def test_the_window_with_most_text_around_both_entities_decides():
    near, far = Triple((4, 5, "a"), (6, 7, "a"), "r", 1.0, 0.7), Triple((1, 2, "a"), (18, 19, "a"), "r", 1.0, 0.7)
    bounds = [(float("-inf"), 10), (3, 20), (15, float("inf"))]
    first, second = Related([], [near]), Related([], [near._replace(score=2.0), far])
    merged = RELATED.merge(bounds, [first, second, Related([], [])])
    assert merged.triples == [near]  # the far one is in no window with its two entities
    assert RELATED.merge(bounds, [Related([], []), second, Related([], [])]).triples == []


def test_dev_chooses_thresholds_and_temperatures_of_relations(config_of, tmp_path):
    config = config_of("relations", tmp_path / "run", tune_thresholds=True, num_train_epochs=1)
    metrics = train_config(config)
    model = json.loads((tmp_path / "run" / "model" / "config.json").read_text(encoding="utf-8"))
    names = relation_types(read_examples(config["train_file"]))
    assert model["relations"] == names and len(of_types(model["relation_thresholds"], 6)) == len(names) == 6
    assert {*metrics["dev"]["reliability"]["temperatures"]} == {*names}
    assert metrics["dev"]["entity_f1"] == metrics["dev"]["entities"]["f1"] and 0 <= metrics["dev"]["text_f1"] <= 1


@pytest.mark.parametrize("seed", range(6))
def test_the_common_threshold_has_the_highest_f1_of_all_thresholds(seed):
    draw = random.Random(seed)
    triples = [Triple((i, i + 1, "a"), (j, j + 1, "a"), kind, draw.uniform(-4, 2), 0.5)
               for i in range(6) for j in range(6) for kind in "rs" if draw.random() < 0.3]  # fmt: skip
    gold = [Gold(frozenset(one[:3] for one in triples if draw.random() < (0.5 + one.score / 9) * (seed > 0)))]

    def f1(threshold):
        return entity_scores(gold, above_thresholds([triples], threshold, ["r", "s"], True), ["r", "s"])["f1"]

    chosen = common_threshold(gold, [triples], ["r", "s"])
    assert f1(chosen) == max(f1(one.score - 1e-6) for one in triples) and (seed or chosen == 0.0)
    assert common_threshold(gold, [[]], ["r", "s"]) == 0.0


def test_training_without_relations_is_refused(config_of, write, refused, tmp_path):
    config = config_of("relations", "run")
    plain = write([{"text": "甲乙", "entities": [{"start": 0, "end": 1, "type": "a"}]}] * 3, "plain.jsonl")
    write({**config, "train_file": str(plain)}, "config.yaml")
    assert "no relation is labeled in it; train the recipe ner" in refused("train", "config.yaml")


def test_exported_in_many_documents_and_on_a_page_are_the_relations_of_the_model(whole, data_of, tmp_path):
    folder, dev, page = whole("relations") / "model", data_of["relations"]["dev_file"], tmp_path / "page.html"
    texts = [one.text for one in read_examples(dev)]
    records = load(folder, device="cpu")(texts)
    relations = [one for record in records for one in record["relations"]]
    assert load(export(tmp_path / "exported", "paddle", folder), device="cpu")(texts) == like(records)
    words = ["predict", str(folder), "--input", dev, "--device", "cpu", "--output"]
    assert main([*words, str(tmp_path / "many"), "--processes", "1"]) == 0
    (part,) = (tmp_path / "many").glob("part-*.jsonl")
    assert [one["relations"] for one in read_json_lines(part)] == like([record["relations"] for record in records])
    assert main([*words, str(tmp_path / "out"), "--html", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert html.count('class="arrow"') == len(relations) > 0 and "<script" not in html
    relations = [one for record in read_json_lines(tmp_path / "out") for one in record["relations"]]
    labels = re.findall(r'class="label">([^<]*)<', html)
    assert sorted(labels) == sorted(f"{one['type']} {one['probability']:.2f}" for one in relations)


def test_label_studio_gets_the_relations_that_are_found(whole, data_of, tmp_path):
    folder, dev = whole("relations") / "model", data_of["relations"]["dev_file"]
    words = ["--input", dev, "--format", "labelstudio", "--output", str(tmp_path / "tasks"), "--top_k", "12"]
    assert main(["predict", str(folder), *words]) == 0
    tasks = json.loads((tmp_path / "tasks").read_text(encoding="utf-8"))
    for task in tasks:  # as if an annotator had accepted them
        task["annotations"] = task.pop("predictions")
    (tmp_path / "accepted").write_text(json.dumps(tasks), encoding="utf-8")
    examples = read_examples(tmp_path / "accepted")
    records = load(folder, device="cpu", top_k=12)([one.text for one in examples])
    found = [{(one["head"], one["tail"], one["type"]) for one in record["relations"]} for record in records]
    assert [{tuple(one) for one in example.relations} for example in examples] == found and any(found)


def test_inspection_counts_relations_and_how_far_they_reach(long_example):
    result = inspect({"train": [long_example], "dev": []})["splits"]
    assert result["train"]["relations"] == {"r": 11} and result["dev"]["relations"] == {}
    assert [result["train"]["relation_lengths"][name] for name in ("min", "median", "max")] == [2, 8, 56]
    assert result["dev"]["relation_lengths"] is None
