"""Training: what a run promises about its metrics, weights, files and log."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from safetensors.numpy import load
from visualdl import LogReader

from tasks.common.training.samplers import LengthGroupedBatchSampler
from tasks.ner import evaluation, recipe
from tasks.ner.arguments import NerArguments
from tasks.ner.examples import Entity
from tasks.ner.fitting import FEWEST_STEPS
from tasks.recipes import get_recipe

TYPES = ["organization", "person", "place", "position", "product", "time"]
FIGURES = ("precision", "recall", "f1")
BIO = "张 B-PER\n三 I-PER\n在 O\n北 B-LOC\n京 I-LOC\n\n李 B-PER\n四 I-PER\n来 O\n"
JSON_LINE = '{"text": "张三在北京", "label": {"PER": {"张三": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}}}\n'


def gold_spans(record):
    """(start, end, type), half-open, straight from the CLUENER format."""
    return {
        (first, last + 1, kind)
        for kind, surfaces in record["label"].items()
        for pairs in surfaces.values()
        for first, last in pairs
    }


def predicted_spans(record):
    return {(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]}


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json_lines(path, records):
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


# ---- files and metrics


def test_a_run_leaves_the_promised_files(trained):
    assert {path.name for path in trained.model.iterdir()} == {
        "model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"
    }  # fmt: skip
    assert {path.name for path in trained.folder.iterdir()} == {
        "model", "metrics.json", "predictions_dev.jsonl", "config.yaml", "inputs.json", "vdl", "checkpoints",
        "epochs.csv", "epochs.md", "epochs.png",
    }  # fmt: skip
    assert trained.metrics.keys() == {"dev", "train_seconds", "parameters", "seed"}
    assert trained.metrics["parameters"] == sum(array.size for array in load(trained.weights).values())
    assert len({path.stat().st_mode for path in trained.model.iterdir()}) == 1  # who reads one may read all


def test_metrics_equal_those_recomputed_from_the_predictions_against_the_gold_file(trained, corpus):
    predictions = read_json_lines(trained.folder / "predictions_dev.jsonl")
    assert [record["text"] for record in predictions] == [record["text"] for record in corpus.dev_records]
    pairs = list(zip(map(gold_spans, corpus.dev_records), map(predicted_spans, predictions)))
    assert list(trained.metrics["dev"]["per_type"]) == TYPES and trained.metrics["dev"]["f1"] > 0.3
    rows = trained.metrics["dev"]["per_type"].items()
    for kinds, scores in [(TYPES, trained.metrics["dev"]), *(([kind], row) for kind, row in rows)]:
        counts = [
            sum(span[2] in kinds for spans in side for span in spans)
            for side in ([gold for gold, _ in pairs], [found for _, found in pairs], [g & f for g, f in pairs])
        ]
        assert [scores["support"], scores["predicted"], scores["correct"]] == counts
        f1 = 2 * counts[2] / max(1, counts[0] + counts[1])
        assert scores["f1"] == pytest.approx(f1)
    correct = [[span[:2] for span in gold & found] for gold, found in pairs]
    assert any(a != b and a[0] <= b[0] and b[1] <= a[1] for spans in correct for a in spans for b in spans)  # nested


@pytest.mark.usefixtures("without_pictures")
def test_a_test_file_is_scored_like_the_dev_file(train, corpus, tmp_path, evaluate):
    test_file = tmp_path / "test.jsonl"
    test_file.write_bytes(b"".join(corpus.dev.read_bytes().splitlines(keepends=True)[:15]))
    run = train(tmp_path / "run", test_file=test_file, num_train_epochs=4)
    assert run.metrics["test"].keys() == run.metrics["dev"].keys()
    scores = evaluate(test_file, run.model)
    del scores["worst_examples"]
    assert run.metrics["test"] == scores


# ---- reproducibility


def test_the_resolved_configuration_fed_back_gives_the_same_run(trained, train, tmp_path):
    again = train(tmp_path / "again", config=trained.folder / "config.yaml")
    assert again.weights == trained.weights and again.metrics["dev"] == trained.metrics["dev"]
    assert {**again.config, "output_dir": ""} == {**trained.config, "output_dir": ""}
    for name in ("predictions_dev.jsonl", "model/vocab.txt", "model/config.json"):
        assert (again.folder / name).read_bytes() == (trained.folder / name).read_bytes()


@pytest.mark.usefixtures("without_pictures")
def test_the_resolved_configuration_holds_defaults_and_overrides_with_their_types(train, trained, tmp_path):
    run = train(tmp_path / "run", num_train_epochs=1, learning_rate="1e-3", seed="7", vocab_min_count="1")
    expected = {"num_train_epochs": 1, "learning_rate": 0.001, "seed": 7, "attention": "softmax", "weight_decay": 0.01}
    assert {key: run.config[key] for key in expected} == expected
    assert run.config["output_dir"] == str(tmp_path / "run")
    assert run.model_config["vocab_size"] > trained.model_config["vocab_size"]


@pytest.mark.usefixtures("without_pictures")
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(train, few_texts, tmp_path):
    options = {"train_file": few_texts.train, "num_train_epochs": 1}
    first, second, other = (train(tmp_path / name, seed=seed, **options) for name, seed in zip("abc", (5, 5, 6)))
    assert first.weights == second.weights != other.weights


@pytest.mark.usefixtures("without_pictures")
def test_each_epoch_shuffles_anew(train, few_texts, tmp_path, monkeypatch):
    epochs = []
    monkeypatch.setattr(LengthGroupedBatchSampler, "set_epoch", lambda self, epoch: epochs.append(epoch))
    train(tmp_path / "run", train_file=few_texts.train, num_train_epochs=3)
    assert epochs == [0, 1, 2]


# ---- other models and data


@pytest.mark.parametrize("attention, span_head", [("linear", "efficient"), ("softmax", "dense")])
@pytest.mark.usefixtures("without_pictures")
def test_attention_and_span_head_are_chosen_by_their_key(train, predict, tmp_path, attention, span_head):
    run = train(tmp_path / "run", attention=attention, span_head=span_head, num_train_epochs=6)
    assert (run.model_config["attention"], run.model_config["span_head"]) == (attention, span_head)
    assert run.metrics["dev"]["f1"] > 0.2
    records = read_json_lines(run.folder / "predictions_dev.jsonl")
    found = predict("\n".join(record["text"] for record in records), run.model)
    assert list(map(predicted_spans, found)) == list(map(predicted_spans, records))


@pytest.mark.usefixtures("without_pictures")
def test_files_may_have_different_formats_and_a_type_that_train_lacks_is_told(train, tmp_path, capsys):
    files = {"train_file": tmp_path / "train.any", "dev_file": tmp_path / "dev.any"}
    for path, content in zip(files.values(), (BIO, JSON_LINE.replace("LOC", "GPE"))):
        path.write_text(content * 3, encoding="utf-8")
    run = train(tmp_path / "run", num_train_epochs=1, **files)
    (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and "GPE" in line]
    assert str(files["dev_file"]) in note
    support = {kind: row["support"] for kind, row in run.metrics["dev"]["per_type"].items()}
    assert support == {"GPE": 3, "LOC": 0, "PER": 3}


def test_gold_that_the_model_cannot_find_is_told_and_counts_as_missed(evaluate, tmp_path, capsys):
    # the combining accent is no token of its own, so that no span of tokens ends between e and it
    record = {"text": "去cafe\u0301店", "label": {"organization": {"cafe": [[1, 4]]}, "animal": {"店": [[6, 6]]}}}
    path = write_json_lines(tmp_path / "marks.jsonl", [record])
    scores = evaluate(path)
    printed = capsys.readouterr().out
    assert f"{path}:1 organization 'cafe'" in printed and "count as missed: animal" in printed
    for kind in ("organization", "animal"):
        row = scores["per_type"][kind]
        assert (row["support"], row["correct"], row["recall"]) == (1, 0, 0.0)
    assert scores["errors"]["missed"] == scores["support"] == 2


@pytest.mark.slow
def test_there_may_be_a_thousand_types_of_any_name(train, evaluate, predict, tmp_path):
    types = [*(f"type {n:03}" for n in range(994)), "占比%", "a/b", "a b", "🙂", "长" * 200, "a\x1b[31m\n\t\x00\u202e"]
    lines = []
    for number in range(100):
        label = {kind: {"乙丙": [[1, 2]]} for kind in types[10 * number : 10 * number + 10]}
        lines.append({"text": f"甲乙丙丁戊{number}己庚", "label": {**label, types[number // 2]: {"甲": [[0, 0]]}}})
    files = {"train_file": write_json_lines(tmp_path / "data.jsonl", lines)}
    files["dev_file"] = write_json_lines(tmp_path / "few.jsonl", lines[::5])
    run = train(tmp_path / "run", **files, num_train_epochs=1, per_device_train_batch_size=50)
    assert run.model_config["types"] == sorted(types)
    assert run.metrics["dev"]["per_type"].keys() == set(types)
    assert len(predict("甲乙丙\n", run.model)) == 1
    assert evaluate(files["dev_file"], run.model)["support"] > 30


def test_configurations_of_the_project_are_valid(monkeypatch):
    monkeypatch.setattr("tasks.common.process.choose_device", lambda name: "cpu")
    files = sorted((Path(__file__).resolve().parents[3] / "configs" / "ner").glob("*.yaml"))
    assert len(files) >= 4
    for path in files:
        given = {"train_file": "train", "output_dir": "run", **yaml.safe_load(path.read_text(encoding="utf-8"))}
        config, keys, training, *_ = get_recipe("ner").resolve(given)
        assert config["train_file"] == keys.train_file and training.num_train_epochs == config["num_train_epochs"]


# ---- what is shown


@pytest.fixture(scope="module")
def log(trained):
    (path,) = (trained.folder / "vdl").glob("*.log")
    return LogReader(file_path=str(path))


def scalars(log, tag):
    return [record.value for record in log.get_data("scalar", tag)]


def test_the_log_has_loss_learning_rate_gradient_norm_and_speed_of_training(log, trained):
    loss, rates = scalars(log, "1_train/loss"), scalars(log, "1_train/learning_rate")
    assert len(loss) == int(trained.config["num_train_epochs"]) * 19 // 4  # an epoch has 19 steps
    assert loss[-1] < loss[0] / 2
    assert rates[0] < max(rates) <= 1e-2 and rates[-1] < 1e-3
    for tag in ("1_train/gradient_norm", "1_train/characters_per_second"):
        values = scalars(log, tag)
        assert len(values) == len(loss) and all(0 < value < math.inf for value in values)


def test_the_log_has_scores_of_each_epoch_overall_and_by_type(log, trained):
    names = [f"dev/{name}" for name in FIGURES] + [f"dev_{name}_by_type/{kind}" for name in FIGURES for kind in TYPES]
    assert {tag for tag in log.get_tags()["scalar"] if tag.startswith("dev")} == set(names)
    assert {len(scalars(log, name)) for name in names} == {trained.config["num_train_epochs"]}
    f1 = scalars(log, "dev/f1")
    assert max(f1) == pytest.approx(trained.metrics["dev"]["f1"])
    for kind, row in trained.metrics["dev"]["per_type"].items():
        assert scalars(log, f"dev_f1_by_type/{kind}")[f1.index(max(f1))] == pytest.approx(row["f1"])


def test_the_log_has_the_configuration_and_the_hyper_parameters(log, trained):
    (text,) = log.get_data("text", "configuration")
    shown = text.text.encoded_text_string.replace("\u00a0", " ").replace("\u2060", "")
    assert yaml.safe_load(shown) == trained.config
    (record,) = log.get_data("hyper_parameters", "hparam")
    values = {info.name: info for info in record.hparam.hparamInfos}
    assert values.keys() == set(NerArguments.HYPER_PARAMETERS)
    assert values["hidden_size"].int_value == 32 and values["attention"].string_value == "softmax"
    assert [info.name for info in record.hparam.metricInfos] == [f"dev/{name}" for name in FIGURES]


ENTITY = Entity(0, 1, "person", 1.0, 0.73)


@pytest.mark.parametrize("found, steps", [([], [2, 6]), ([ENTITY], [])], ids=["none", "some"])
def test_training_that_finds_nothing_tells_it_early_once_and_at_the_end(
    train, few_texts, tmp_path, without_pictures, capsys, monkeypatch, found, steps
):
    for module in (evaluation, recipe):
        monkeypatch.setattr(module, "find_in_windows", lambda model, texts, *_, **__: [found for _ in texts])
    options = {"train_file": few_texts.train, "dev_file": few_texts.dev, "num_train_epochs": 3}
    train(tmp_path / "run", **options, per_device_train_batch_size=23)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: nothing is found in dev")]
    assert [f"after {step} of 6 steps" in note for step, note in zip(steps, notes, strict=True)] == [True] * len(steps)
    assert all("--num_train_epochs 150" in note for note in notes)


def test_after_many_steps_without_entities_a_lower_learning_rate_is_advised():
    state = SimpleNamespace(max_steps=FEWEST_STEPS, global_step=FEWEST_STEPS)
    training = SimpleNamespace(learning_rate=0.01, warmup_ratio=0.05)
    line = recipe.nothing_found(SimpleNamespace(trainer=SimpleNamespace(state=state), training=training))
    assert "lower learning_rate than 0.01" in line and "larger warmup_ratio than 0.05" in line
