"""Benchmarks of a service, of engines, beside peers, and of a CRF."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from paddle_rope import RoFormerConfig, RoFormerModel
from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.ner.examples import Entity, make_example
from paddle_rope.tasks.ner.features import WordFeatures
from tests.helpers.models import FORMATS, write_demo_ner
from tests.tasks.serving.conftest import REPOSITORY, STUB, skip_without_extra
from tools.benchmarks import crf, generation, peers, prediction, service
from tools.benchmarks.crf import attributes, entities_of, longest_entities, tags_of


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    return write_demo_ner(tmp_path_factory.mktemp("demo"))


@pytest.mark.parametrize("main, words, said", [
    (peers.main, "--sizes 4x250", "--sizes"),
    (peers.main, "--sizes 1x1", "--sizes"),
    (peers.main, "--rounds 0", "--rounds"),
    (peers.main, "--sides huggingface", "--sides"),
    (prediction.main, "nowhere --input missing", "missing"),
    (service.main, "nowhere --input texts", "nowhere: no such folder"),
    (service.main, "nowhere --input missing.txt", "missing.txt"),
    (service.main, "nowhere --input texts --seconds 0", "--seconds 0.0"),
    (service.main, "nowhere --input texts --output texts", "texts: is among the other files"),
    (service.main, "NER --input texts -- --max_queue 0", "--max_queue must be"),
])  # fmt: skip
def test_mistakes_are_one_line_with_status_2(demo, tmp_path, monkeypatch, capsys, main, words, said):
    if main is service.main:
        skip_without_extra()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").write_text("一\n", encoding="utf-8")
    assert main([str(demo[0]) if word == "NER" else word for word in words.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and said in error
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]


@pytest.mark.slow
def test_every_request_to_a_service_is_answered_or_refused(tmp_path, monkeypatch, capsys):
    skip_without_extra()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    (tmp_path / "texts.txt").write_text("一\n二\n三\n", encoding="utf-8")
    monkeypatch.setattr(service, "SERVE", [sys.executable, str(STUB)])
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    words = ". --input texts.txt --output load.json --seconds 0.5 --connections 4 -- --max_queue 1"
    assert service.main(words.split()) == 0
    loads = json.loads((tmp_path / "load.json").read_text(encoding="utf-8"))["loads"]
    assert len(loads) == 3
    for load in loads:
        assert load["lost"] == 0 and load["sent"] == pytest.approx(load["answered"] + load["refused"], abs=0.2)
        assert 0 < load["p50"] <= load["p99"] and load["health_p99"] > 0
    assert loads[2]["refused"] > 0
    assert "stopped with status 0" in capsys.readouterr().out


# ---- engines
GRAPH = FORMATS[0]


@pytest.mark.slow
def test_each_engine_has_a_row_with_a_time_of_each_round(demo, tmp_path):
    (model, data), output = demo, tmp_path / "out.json"
    words = [model, "--input", data, "--engines", GRAPH, "--texts", 5, "--rounds", 2, "--output", output]
    assert prediction.main([*map(str, words)]) == 0
    measured = json.loads(output.read_text(encoding="utf-8"))
    assert measured["texts"] == 5 and measured["notes"] == []
    assert [row["engine"] for row in measured["rows"]] == ["eager", GRAPH]
    for row in measured["rows"]:
        assert len(row["turns"]) == 2 and all(min(turn.values()) > 0 for turn in row["turns"])
        assert row["first_answer_seconds"] > 0 and row["megabytes"] > 0
        assert row["changed"] == 0 and row["f1"] == measured["rows"][0]["f1"]


def test_a_generated_token_is_timed_in_each_form(tmp_path):
    output = tmp_path / "out.json"
    assert generation.main(["--tokens", "2", "--rounds", "1", "--output", str(output)]) == 0
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row.pop("attention") for row in rows] == ["softmax", "linear", "linear, all ingredients"]
    assert all(row.keys() == {"native", "plain"} and float(min(row.values())) > 0 for row in rows)


def test_predictions_are_compared_span_by_span():
    first = [[Entity(0, 2, "person", 1.0), Entity(3, 4, "place", 2.0)], [Entity(0, 1, "place", 1.0)]]
    second = [[Entity(0, 2, "person", 1.5), Entity(3, 4, "person", 2.0)], []]
    assert prediction.compare(first, first) == prediction.compare([[]], [[]]) == (0, 0)
    assert prediction.compare(first, second) == (1.0, 0.5)  # three spans are of one alone


# ---- peers

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")
ENCODER = {"do": "encoder", "folder": "x"}


@pytest.mark.parametrize("name, good, bad", [("huggingface", 1.00001, 1.01), ("huggingface_bfloat16", 1.01, 1.2)])
def test_a_side_with_other_numbers_is_refused(name, good, bad):
    def measure(output):
        sides = {"plain": 1.0, name: output}
        workers = {side: SimpleNamespace(ask=lambda one=one, **_: {"output": [one]}) for side, one in sides.items()}
        peers.measure_in_turns(workers, ENCODER, rounds=0)

    measure(good)
    for output in (bad, float("nan")):
        with pytest.raises(InputError, match="encoder differs"):
            measure(output)


@pytest.mark.slow
def test_the_sides_in_paddle_compute_the_same(tmp_path):
    write_huggingface(RoFormerModel(RoFormerConfig(**peers.encoder_settings(1, 64))), tmp_path, 3)
    names = {"products", "paddlenlp", *(["native"] if library() else ["plain"])}
    names |= {"native_bfloat16"} if why_no_bfloat16() is None else set()
    workers = {name: SimpleNamespace(ask=peers.start(name)[1]) for name in names}
    turns = peers.measure_in_turns(workers, {**ENCODER, "folder": str(tmp_path), "texts": 2, "length": 3}, rounds=1)
    assert turns["train"].keys() == turns["predict"].keys() == names


@pytest.mark.slow
def test_sides_in_processes_compute_the_same_and_are_in_the_file(tmp_path, capsys):
    """With Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    file, peer = tmp_path / "peers.json", ["huggingface"] if PEER_PYTHON else []
    sides = ["plain", "paddlenlp_as_installed", "huggingface", "huggingface_bfloat16"]
    argv = ["--sides", *sides, "--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(file)]
    assert peers.main([*argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["job"] for row in rows] == ["train", "predict", "attend"]
    encoders, linear = {*sides[: None if PEER_PYTHON else 2]}, {"plain", *peer}
    assert [set(row["turns"]) for row in rows] == [encoders, encoders, linear]
    assert PEER_PYTHON or "Hugging Face is left out" in capsys.readouterr().out


# ---- a CRF
SPANS = (1, 3, "place"), (1, 5, "school"), (4, 6, "other"), (6, 7, "act")
NESTED = make_example("在北京大学读书", [Entity(*span) for span in SPANS], "f:1")


def test_tags_hold_the_longest_of_the_entities_that_share_characters():
    assert longest_entities(NESTED.entities) == [Entity(1, 5, "school"), Entity(6, 7, "act")]
    tags = tags_of(NESTED)
    assert tags == ["O", "B-school", "M-school", "M-school", "E-school", "O", "S-act"]
    assert entities_of(tags) == longest_entities(NESTED.entities)
    assert entities_of(["M-x", "M-x", "O", "B-y"]) == [Entity(0, 2, "x"), Entity(3, 4, "y")]  # not well-formed
    # of one length the first
    assert longest_entities([Entity(1, 3, "b"), Entity(0, 2, "a"), Entity(0, 2, "z")]) == [Entity(0, 2, "a")]


def test_word_features_are_those_of_the_neural_models_without_a_text_s_own_labels():
    examples = [make_example("去了北京", [Entity(2, 4, "place")], "f:1"), make_example("没有", (), "f:2")]
    features, text = WordFeatures.from_examples(examples, ["segmentation", "gazetteer"], min_count=1), "去了北京"
    given = features(text, [(place, place + 1) for place in range(len(text))])
    assert given.columns.any() and given.flags.any()
    for names, columns, flags in zip(attributes(text, features), given.columns, given.flags):
        expected = [f"column {number}={value}" for number, value in enumerate(columns) if value]
        expected += [f"flag={number}" for number in flags.nonzero()[0]]
        assert [name for name in names if name.startswith(("column", "flag"))] == expected
    own = attributes(text, features, own=examples[0])
    assert not any("flag" in name for names in own for name in names)


def test_a_crf_learns_and_is_scored_as_others_are(tmp_path, capsys):
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed: pip install 'paddle_rope[crf]'")
    train, test = map(str, write_demo_corpus(tmp_path, train_size=150, dev_size=40))
    words = f"--train_file {train} --test_file {test} --train_texts 60 --features segmentation,gazetteer".split()

    def train_crf(name, *more):
        assert crf.main([*words, "--output_dir", str(tmp_path / name), *more]) == 0
        return json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8"))

    metrics, printed = train_crf("run"), capsys.readouterr().out
    assert "train_texts: 60 of the 150 texts" in printed and f"{metrics['test']['f1']:.4f}" in printed
    assert metrics["dev"]["support"] > 0 and metrics["test"]["f1"] > 0.5
    assert metrics["parameters"] > 0 and metrics["not_learned"] > 0  # the demo corpus has nested entities
    nothing = train_crf("nothing", "--c1", "1e9")
    assert (nothing["parameters"], nothing["iterations"]) == (0, 0)
    for more, said in ((["--features", "words,nothing"], "--features must be some of"),
                       (["--dev_fraction", "2"], "--dev_fraction must be"),
                       (["--train_texts", "151"], "has only 150 texts"),
                       (["--output_dir", str(tmp_path / "run")], "is not empty")):  # fmt: skip
        capsys.readouterr()
        assert crf.main([*words, "--output_dir", str(tmp_path / "new"), *more]) == 2
        assert said in capsys.readouterr().err and not (tmp_path / "new").exists()
