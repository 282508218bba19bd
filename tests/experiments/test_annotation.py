"""The simulated annotation loop: how the labeled texts grow, a loop on the demo corpus, labels saved."""

import json

import pytest
import yaml

from tasks.commands.experiment import experiment
from tasks.common.errors import exit_on_input_error
from tasks.experiments.annotation.report import saved
from tasks.experiments.annotation.selection import STRATEGIES, grow
from tasks.ner.data.reading import read_examples
from tasks.ner.demo.corpus import write_demo_corpus
from tasks.ner.examples import Entity, make_example

run = exit_on_input_error(experiment)
NUMBERS = [f"{chr(0x4E00 + 7 * n)}{chr(0x4E03 + 7 * n)}" * (1 + n % 5) for n in range(40)]
EXAMPLES = [make_example(text, (), f"f:{number}") for number, text in enumerate(NUMBERS, 1)]


def find(texts):
    """The probabilities come nearer to one half from text to text."""
    return [[Entity(0, 1, "t", 1.0, 0.99 - 0.01 * NUMBERS.index(text))] for text in texts]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labeled_texts_stay_and_grow(strategy):
    first = grow(EXAMPLES, [], 10, strategy, 1, find)
    second = grow(EXAMPLES, first, 15, strategy, 1, find)
    assert second[:10] == first and len(set(second)) == 15
    assert second == grow(EXAMPLES, first, 15, strategy, 1, find)


def test_the_first_texts_are_drawn_by_the_seed_whatever_the_strategy():
    drawn = [grow(EXAMPLES, [], 10, strategy, 1, find) for strategy in STRATEGIES]
    assert drawn.count(drawn[0]) == len(STRATEGIES) and drawn[0] != grow(EXAMPLES, [], 10, "random", 2, find)


def test_strategies_take_what_they_say():
    labeled = list(range(5))
    assert grow(EXAMPLES, labeled, 8, "uncertain", 1, find)[5:] == [39, 38, 37]
    assert grow(EXAMPLES, labeled, 8, "doubtful_span", 1, find)[5:] == [39, 38, 37]
    assert grow(EXAMPLES, labeled, 8, "longest", 1, find)[5:] == [9, 14, 19]


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """The folder of a loop of two rounds with small models."""
    folder = tmp_path_factory.mktemp("annotation")
    train, dev = write_demo_corpus(folder / "data", train_size=60, dev_size=10)
    plan = {
        "output_dir": str(folder / "out"), "recipe": "annotation", "report": "annotation", "apart": False,
        "settings": {
            "train_file": str(train), "test_file": str(dev), "dev_fraction": 0, "hidden_size": 16,
            "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "num_train_epochs": 1,
        },
        "scores": {"test.f1": "F1"}, "case_name": "labeled texts", "reference": "random", "seeds": [1],
        "cases": {15: {"labeled_texts": 15}, 30: {"labeled_texts": 30, "previous": 15}},
        "variants": {"random": {"strategy": "random"}, "uncertain": {"strategy": "uncertain"}},
    }  # fmt: skip
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    assert run([str(folder / "plan.yaml"), "--device", "cpu"]) == 0
    return folder


def labeled(loop, case, variant):
    path = loop / "out" / "runs" / case / variant / "seed_1" / "model" / "labeled.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_both_begin_with_the_same_texts_and_go_on_with_their_own(loop):
    first, chosen, drawn = (
        labeled(loop, "15", "random"),
        labeled(loop, "30", "uncertain"),
        labeled(loop, "30", "random"),
    )
    assert labeled(loop, "15", "uncertain") == first == chosen[:15] == drawn[:15]
    assert len(set(chosen)) == len(set(drawn)) == 30 and set(chosen) != set(drawn)


def test_a_run_says_what_was_labeled(loop):
    examples = read_examples(loop / "data" / "train.jsonl")
    taken = [examples[index] for index in labeled(loop, "30", "uncertain")]
    metrics = json.loads((loop / "out/runs/30/uncertain/seed_1/metrics.json").read_text(encoding="utf-8"))
    assert metrics["labeled"] == {
        "texts": 30,
        "characters": sum(len(one.text) for one in taken),
        "entities": sum(len(one.entities) for one in taken),
    }


def test_the_report_has_the_points_and_is_drawn(loop):
    rows = (loop / "out" / "curves.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "variant,seed,texts,characters,entities,f1" and len(rows) == 5
    text = (loop / "out" / "results.md").read_text(encoding="utf-8")
    assert "F1, 15 texts" in text and "Labels saved at the F1 of 30 texts chosen at random" in text
    assert (loop / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_more_labeled_texts_than_there_are_is_an_error(loop, capsys):
    words = ["--output_dir", str(loop / "more"), "--device", "cpu", "--cases", "15", "--labeled_texts", "61"]
    assert run([str(loop / "plan.yaml"), *words]) == 2
    assert "labeled_texts 61: " in capsys.readouterr().err


def points(*pairs):
    return [{"texts": texts, "f1": f1} for texts, f1 in pairs]


@pytest.mark.parametrize(
    "curve, share",
    [
        (points((100, 0.2), (400, 0.6)), 0.0),  # 0.4 at 200, in the middle between the logarithms
        (points((50, 0.2), (200, 0.6)), 0.5),
        (points((100, 0.2), (200, 0.4)), 0.0),
        (points((100, 0.2), (200, 0.3)), None),
        (points((100, 0.5), (200, 0.6)), 0.5),
        (points((100, 0.2), (800, 0.5)), -1.0),
    ],
)
def test_labels_saved_at_the_last_f1_of_the_reference(curve, share):
    found = saved(curve, points((100, 0.2), (200, 0.4)), "texts")
    assert found == (share if share is None else pytest.approx(share))
