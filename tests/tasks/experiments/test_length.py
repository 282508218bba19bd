"""Against length: time and memory, what is measured, left out, fitted and written; F1 of NER models; and the workers of
benchmarks."""

import json
import signal

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.experiments import length as length_benchmark
from paddle_rope.tasks.experiments.entities import first_texts, join_neighbors
from paddle_rope.tasks.experiments.length import (
    measure,
    measure_apart,
    read_length_plan,
    reason_to_leave_out,
    slope_rows,
)
from paddle_rope.tasks.experiments.worker import Worker
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Entity, Example
from tests.helpers.models import write_demo_ner
from tests.tasks.ner.conftest import error_of

MODEL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
NER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_size": 8}
LENGTHS = [64, 128, 256, 512, 1024]


def test_a_variant_whose_name_is_a_number_has_the_options_of_the_model(write):
    plan = {"output_dir": "out", "model": MODEL, "lengths": LENGTHS, "memory_limit": 1, "time_limit": 1}
    path = write({**plan, "reference": "softmax", "variants": {"softmax": {}, 64: {"attention": "window"}}}, "a.yaml")
    assert read_length_plan(path)["variants"] == {"softmax": MODEL, "64": {**MODEL, "attention": "window"}}


def test_a_benchmark_that_was_cut_goes_on_and_leaves_its_file_and_table(write, tmp_path, monkeypatch, capsys):
    measured, cut = [], 12

    def measure(task, job, options, length, device):
        """In place of measurements: softmax quadratic from 1 s, linear from 4 s, at 64 tokens."""
        measured.append((job, options["attention"], length))
        if len(measured) == cut:
            raise KeyboardInterrupt
        seconds = (length / 64) ** 2 if options["attention"] == "softmax" else 4 * length / 64
        return {"seconds": seconds, "peak_mb": round(500 + 10 * seconds), "idle_mb": 500}

    def run(time_limit):
        plan = {
            **{"output_dir": str(tmp_path / "out"), "model": MODEL, "lengths": LENGTHS},
            **{"reference": "softmax", "memory_limit": 100, "time_limit": time_limit},
            "variants": {"softmax": {"attention": "softmax"}, "linear": {"attention": "linear"}},
        }
        return main(["benchmark", "length", str(write(plan, "speed.yaml"))])

    monkeypatch.setattr(length_benchmark, "measure_apart", measure)
    assert run(100) == 128 + signal.SIGINT
    assert ("train", "softmax", 1024) not in measured  # 256 s foreseen
    capsys.readouterr()
    assert run(10000) == 0
    again = measured[cut:]  # what was left out is judged anew, what is finished is not measured
    assert ("train", "softmax", 1024) in again and not set(again) & set(measured[: cut - 1])
    assert len(measured) - 1 == 2 * 2 * len(LENGTHS)
    rows = json.loads((tmp_path / "out" / "speed.json").read_text(encoding="utf-8"))
    assert len(rows) == 2 * 2 * len(LENGTHS) and rows[1] == {
        **{"job": "train", "variant": "softmax", "length": 128, "seconds": 4.0, "peak_mb": 540, "idle_mb": 500},
        **{"left_out": "", "options": {"device": "cpu", "task": "classification", **MODEL, "attention": "softmax"}},
    }
    shown = capsys.readouterr().out
    assert "| job | variant | longest | time slope | memory slope | time share | memory share |" in shown
    assert shown.count("| softmax |") == 2
    softmax, linear = slope_rows("softmax", rows)[:2]
    assert (softmax["time slope"], softmax["memory slope"], linear["time slope"]) == ("2.00", "2.00", "1.00")
    assert linear["time share"] == linear["memory share"] == "0.25 at 1024" and "time share" not in softmax


@pytest.mark.slow
def test_measurement_gives_seconds_and_memory_or_says_why_it_fails():
    for job in ("train", "predict"):
        result = measure("ner", job, {**NER, "attention": "linear", "recompute": True}, 64, "cpu")
        assert result["seconds"] > 0 < result["processor_seconds"]
        assert 10 < result["idle_mb"] <= result["peak_mb"] < 100_000
    assert measure_apart("classification", "predict", MODEL, 64, "cpu").keys() == result.keys()
    options = {**MODEL, "hidden_size": 15}
    assert "status 1: ValueError" in error_of(measure_apart, "classification", "predict", options, 64, "cpu")


@pytest.mark.parametrize("memory, seconds, said", [(1, 1e9, "2 GB foreseen"), (1e9, 30, "64 s foreseen"), (9, 99, "")])
def test_a_length_is_left_out_by_the_power_law_of_the_last_two(memory, seconds, said):
    known = [(64, 1.0, 100), (128, 4.0, 199), (256, 16.0, 595)]
    assert reason_to_leave_out(known, 512, {"memory_limit": memory, "time_limit": seconds}) == said
    assert reason_to_leave_out(known[:2], 512, {"memory_limit": 0, "time_limit": 0}) == ""


# ---- F1
@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of the model, labeled file)"""
    return write_demo_ner(tmp_path_factory.mktemp("demo"))


def test_documents_hold_all_texts_with_their_entities(demo):
    examples = read_examples(demo[1])
    texts = first_texts(examples, 300)
    assert texts == examples[: len(texts)]
    assert sum(len(text.text) for text in texts[:-1]) < 300 <= sum(len(text.text) for text in texts)
    documents = join_neighbors(texts, 100)
    assert max(len(document.text) for document in documents) <= 100
    surfaces = [[one.surface(entity) for one in group for entity in one.entities] for group in (documents, texts)]
    assert surfaces[0] == surfaces[1]
    examples = [Example(text, (), "x:1") for text in ("一二三", "a", "b", "四五六七八九", "十", "")]
    joined = [document.text for document in join_neighbors(examples, 5)]
    assert joined == ["一二三a", "b", "四五六七八九", "十"]  # only a text alone is longer
    assert [one.text for one in join_neighbors([Example(text, (), "x:1") for text in "abc"], 4)] == ["a b", "c"]


@pytest.mark.parametrize("texts, joined, last", [
    (("去北京", "", "北京大学。"), "去北京北京大学。", (3, 7)),
    (("NBA", "2010年"), "NBA 2010年", (4, 8)),
    (("NBA", "在"), "NBA在", (3, 4)),
    (("NBA.", "A"), "NBA.A", (4, 5)),
    (("é", "A"), "éA", (1, 2)),
])  # fmt: skip
def test_joined_entities_keep_their_texts_and_only_ascii_words_are_kept_apart(texts, joined, last):
    end = min(4, len(texts[-1]))
    *first, final = [Example(text, (), f"x:{number}") for number, text in enumerate(texts)]
    (document,) = join_neighbors([*first, Example(final.text, (Entity(0, end, "a"),), "x:9")], 100)
    assert (document.text, document.where, document.entities[0][:2]) == (joined, "x:0", last)


def test_report_and_numbers_of_a_model(demo, tmp_path, capsys):
    (model, data), output = demo, tmp_path / "out.json"
    words = ["benchmark", "entities", model, "--input", data, "--output", output, "--lengths", 50, 200]
    words += ["--characters", 400, "--whole", "--names", "one", "--device", "cpu"]
    assert main([*map(str, words)]) == 0
    numbers = json.loads(output.read_text(encoding="utf-8"))
    shown = capsys.readouterr().out
    cases = [(row["model"], row["reading"], row["length"]) for row in numbers["rows"]]
    assert cases == [("one", reading, length) for reading in ("default", "whole") for length in (None, 50, 200)]
    assert len({row["support"] for row in numbers["rows"]}) == 1
    alone, whole = numbers["rows"][0], numbers["rows"][3]  # texts that fit into the window are read whole in either way
    assert alone["correct"] == whole["correct"] and alone["predicted"] == whole["predicted"] > 0
    assert "\n| model | reads | alone | 50 | 200 |\n" in shown and f"| one | whole | {whole['f1']:.4f} |" in shown


# ---- workers
WORKER = """
import os, sys
from paddle_rope.tasks.common.errors import InputError

def start(how):
    print("noise of a library")
    if how == "left out":
        raise InputError("there is no such library")
    if how == "fails":
        print("it is tired", file=sys.stderr)
        sys.exit(3)
    def respond(number):
        print("more noise")
        return {"twice": 2 * number, "added": os.environ.get("ADDED"), "removed": os.environ.get("REMOVED")}
    return {}, respond
"""


def test_a_worker_answers_in_its_own_environment_or_says_why_it_cannot(write, tmp_path, monkeypatch):
    def new_worker(*arguments, **options):
        return Worker("a_package.side", *arguments, is_prepared=False, **options)

    write(WORKER, "a_package/side.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("REMOVED", "1")
    with new_worker("well", ADDED="2", REMOVED=None) as worker:
        assert worker.ask(number=3) == {"twice": 6, "added": "2", "removed": None}
        assert "status 1: TypeError" in error_of(worker.ask, nothing=1)
    for how, message in (("left out", "there is no such library"), ("fails", "status 3: it is tired")):
        assert message in error_of(new_worker, how)
    message = error_of(new_worker, "well", python="/nowhere/python")
    assert "/nowhere/python cannot be started " in message and "another Python" in message
