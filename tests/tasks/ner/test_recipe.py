"""Training: what a run promises about its metrics, weights, files and log."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from safetensors.numpy import load
from visualdl import LogReader

from paddle_rope.roformer import CharTokenizer
from tasks.common.training.length_grouping import LengthGroupedBatchSampler
from tasks.ner import evaluation, recipe
from tasks.ner.arguments import NerArguments
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity
from tasks.ner.fitting import FEWEST_STEPS
from tasks.recipes import get_recipe

TYPES = ["organization", "person", "place", "position", "product", "time"]
BIO = "张 B-PER\n三 I-PER\n在 O\n北 B-LOC\n京 I-LOC\n\n李 B-PER\n四 I-PER\n来 O\n"
BMES = "张 B-PER\n三 E-PER\n在 O\n南 B-LOC\n京 M-LOC\n市 E-LOC\n\n李 S-PER\n来 O\n"
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


def precision_recall_f1(gold, found):
    correct = sum(len(g & f) for g, f in zip(gold, found))
    precision, recall = correct / sum(map(len, found)), correct / sum(map(len, gold))
    return precision, recall, 2 * precision * recall / (precision + recall)


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# ---- files and metrics


def test_run_leaves_the_files_that_are_promised(trained):
    assert {path.name for path in trained.model.iterdir()} == {
        "model.safetensors", "config.json", "vocab.txt", "tokenizer_config.json"
    }  # fmt: skip
    assert {path.name for path in trained.folder.iterdir()} == {
        "model", "metrics.json", "predictions_dev.jsonl", "config.yaml", "inputs.json", "vdl", "checkpoints",
        "epochs.csv", "epochs.md", "epochs.png",
    }  # fmt: skip
    assert trained.metrics.keys() == {"dev", "train_seconds", "parameters", "seed"}
    assert trained.metrics["train_seconds"] > 0


def test_parameters_are_those_of_the_saved_weights(trained):
    assert trained.metrics["parameters"] == sum(array.size for array in load(trained.weights).values())


def test_model_learns_to_find_entities_also_nested_ones(trained, corpus):
    assert trained.metrics["dev"]["f1"] > 0.3
    nested = 0
    for gold, record in zip(corpus.dev_records, read_json_lines(trained.folder / "predictions_dev.jsonl")):
        correct = [span[:2] for span in gold_spans(gold) & predicted_spans(record)]
        nested += sum(a != b and a[0] <= b[0] and b[1] <= a[1] for a in correct for b in correct)
    assert nested > 0


def test_metrics_equal_those_recomputed_from_the_predictions_against_the_gold_file(trained, corpus):
    predictions = read_json_lines(trained.folder / "predictions_dev.jsonl")
    assert [record["text"] for record in predictions] == [record["text"] for record in corpus.dev_records]
    gold = [gold_spans(record) for record in corpus.dev_records]
    found = list(map(predicted_spans, predictions))
    scores = trained.metrics["dev"]
    assert (scores["precision"], scores["recall"], scores["f1"]) == pytest.approx(precision_recall_f1(gold, found))
    assert list(scores["per_type"]) == TYPES
    for kind in ("place", "person"):
        row = scores["per_type"][kind]
        of_kind = [[{span for span in spans if span[2] == kind} for spans in side] for side in (gold, found)]
        assert (row["precision"], row["recall"], row["f1"]) == pytest.approx(precision_recall_f1(*of_kind))


def test_test_file_is_scored_like_the_dev_file(train, corpus, tmp_path, evaluate):
    test_file = tmp_path / "test.jsonl"
    test_file.write_bytes(b"".join(corpus.dev.read_bytes().splitlines(keepends=True)[:15]))
    run = train(tmp_path / "run", test_file=test_file, num_train_epochs=4)
    assert run.metrics["test"].keys() == run.metrics["dev"].keys()
    assert run.metrics["test"]["support"] < run.metrics["dev"]["support"]
    scores = evaluate(test_file, run.model)
    del scores["worst_examples"]
    assert run.metrics["test"] == scores


# ---- reproducibility


def test_resolved_configuration_fed_back_gives_the_same_weights_and_predictions(trained, train, tmp_path):
    again = train(tmp_path / "again", config=trained.folder / "config.yaml")
    assert again.weights == trained.weights
    assert again.metrics["dev"] == trained.metrics["dev"]
    assert {**again.config, "output_dir": ""} == {**trained.config, "output_dir": ""}
    for name in ("predictions_dev.jsonl", "model/vocab.txt", "model/config.json"):
        assert (again.folder / name).read_bytes() == (trained.folder / name).read_bytes()


def test_resolved_configuration_holds_defaults_and_overrides_with_their_types(train, tmp_path):
    config = train(tmp_path / "run", num_train_epochs=1, learning_rate="1e-3", seed="7").config
    assert (config["num_train_epochs"], config["learning_rate"], config["seed"]) == (1, 0.001, 7)
    assert (config["attention"], config["weight_decay"], config["device"]) == ("softmax", 0.01, "cpu")
    assert config["output_dir"] == str(tmp_path / "run")


def test_same_seed_gives_the_same_weights_and_another_seed_others(train, tmp_path):
    first, second = (train(tmp_path / name, num_train_epochs=1, seed=5) for name in "ab")
    other = train(tmp_path / "c", num_train_epochs=1, seed=6)
    assert first.weights == second.weights
    assert first.weights != other.weights


def test_each_epoch_shuffles_anew(train, tmp_path, monkeypatch):
    epochs = []
    monkeypatch.setattr(LengthGroupedBatchSampler, "set_epoch", lambda self, epoch: epochs.append(epoch))
    train(tmp_path / "run", num_train_epochs=3)
    assert epochs == [0, 1, 2]


# ---- the best checkpoint


def test_saved_model_is_that_of_the_best_epoch_not_of_the_last(train, tmp_path, monkeypatch):
    original, pretended, weights = recipe.evaluate_model, [0.2, 0.9, 0.5], []

    def evaluate_model(model, *arguments, **options):
        evaluation = original(model, *arguments, **options)
        weights.append({name: array.numpy().copy() for name, array in model.state_dict().items()})
        if len(weights) <= len(pretended):
            evaluation.scores["f1"] = pretended[len(weights) - 1]
        return evaluation

    monkeypatch.setattr(recipe, "evaluate_model", evaluate_model)
    run = train(tmp_path / "run", num_train_epochs=3)
    saved = load(run.weights)
    assert len(weights) == 4  # three epochs and the metrics of the end
    assert all((saved[name] == array).all() for name, array in weights[1].items())
    assert any((saved[name] != array).any() for name, array in weights[2].items())
    # the best and, for resuming, the last; the others are gone
    assert len(list((run.folder / "checkpoints").glob("checkpoint-*"))) == 2


# ---- other models and data


@pytest.mark.parametrize("attention, span_head", [("linear", "efficient"), ("softmax", "dense")])
def test_attention_and_span_head_are_chosen_by_their_key(train, predict, tmp_path, attention, span_head):
    run = train(tmp_path / "run", attention=attention, span_head=span_head, num_train_epochs=6)
    assert (run.model_config["attention"], run.model_config["span_head"]) == (attention, span_head)
    assert run.metrics["dev"]["f1"] > 0.2
    records = read_json_lines(run.folder / "predictions_dev.jsonl")
    found = predict("\n".join(record["text"] for record in records), run.model)
    assert list(map(predicted_spans, found)) == list(map(predicted_spans, records))


@pytest.mark.parametrize(
    "train_content, dev_content", [(BIO, BIO), (BMES, BMES), (JSON_LINE, JSON_LINE), (BIO, JSON_LINE)]
)
def test_configuration_of_one_data_set_trains_on_another_in_any_format(train, tmp_path, train_content, dev_content):
    files = {"train_file": tmp_path / "train.any", "dev_file": tmp_path / "dev.any"}
    for path, content in zip(files.values(), (train_content, dev_content)):
        path.write_text(content * 3, encoding="utf-8")
    run = train(tmp_path / "run", num_train_epochs=1, **files)
    assert run.model_config["types"] == list(run.metrics["dev"]["per_type"]) == ["LOC", "PER"]
    assert CharTokenizer.from_pretrained(run.model).encode("张").ids[1] not in (0, 1)


def test_rare_characters_become_unknown_by_vocab_min_count(train, tmp_path, trained):
    run = train(tmp_path / "run", num_train_epochs=1, vocab_min_count=1)
    assert run.model_config["vocab_size"] > trained.model_config["vocab_size"]


def test_types_of_the_dev_file_that_train_lacks_are_told_and_count_as_missed(train, tmp_path, capsys):
    files = {"train_file": tmp_path / "train", "dev_file": tmp_path / "dev"}
    for path, content in zip(files.values(), (BIO, BIO.replace("LOC", "GPE"))):
        path.write_text(content * 3, encoding="utf-8")
    run = train(tmp_path / "run", num_train_epochs=1, **files)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ") and "GPE" in line]
    assert len(notes) == 1 and str(files["dev_file"]) in notes[0]
    assert run.metrics["dev"]["per_type"]["GPE"]["support"] == 3


def test_gold_entities_inside_a_token_are_reported_by_place_and_count_as_missed(evaluate, tmp_path, capsys):
    path = tmp_path / "marks.jsonl"
    # the combining accent is no token of its own, so that no span of tokens ends between e and it
    path.write_text(
        JSON_LINE.replace("PER", "person").replace("LOC", "place")
        + '{"text": "去cafe\u0301店", "label": {"organization": {"cafe": [[1, 4]]}, "place": {"店": [[6, 6]]}}}\n',
        encoding="utf-8",
    )
    scores = evaluate(path)
    printed = capsys.readouterr().out
    assert "1 of them start or end inside a token and cannot be found by the model (they count as missed)" in printed
    assert f"{path}:2 organization 'cafe'" in printed
    assert scores["support"] == 4
    organization = scores["per_type"]["organization"]
    assert (organization["support"], organization["correct"], organization["recall"]) == (1, 0, 0.0)


# ---- the VisualDL log


@pytest.fixture(scope="module")
def log(trained):
    (path,) = (trained.folder / "vdl").glob("*.log")
    return LogReader(file_path=str(path))


def scalars(log, tag):
    assert tag in log.get_tags()["scalar"]
    return [record.value for record in log.get_data("scalar", tag)]


def test_log_shows_loss_learning_rate_gradient_norm_and_speed_of_training(log, trained):
    loss = scalars(log, "1_train/loss")
    assert len(loss) == int(trained.config["num_train_epochs"]) * 19 // 4  # an epoch has 19 steps
    assert loss[-1] < loss[0] / 2
    rates = scalars(log, "1_train/learning_rate")
    assert rates[0] < max(rates) <= 1e-2 and rates[-1] < 1e-3
    for tag in ("1_train/gradient_norm", "1_train/characters_per_second"):
        values = scalars(log, tag)
        assert len(values) == len(loss) and all(0 < value < math.inf for value in values)


def test_log_shows_precision_recall_and_f1_of_each_epoch_overall_and_by_type(log, trained):
    figures = ("precision", "recall", "f1")
    names = [f"dev/{name}" for name in figures] + [f"dev_{name}_by_type/{kind}" for name in figures for kind in TYPES]
    assert {tag for tag in log.get_tags()["scalar"] if tag.startswith("dev")} == set(names)
    assert all(len(scalars(log, name)) == trained.config["num_train_epochs"] for name in names)
    f1 = scalars(log, "dev/f1")
    assert max(f1) == pytest.approx(trained.metrics["dev"]["f1"])
    best = f1.index(max(f1))
    for kind, row in trained.metrics["dev"]["per_type"].items():
        assert scalars(log, f"dev_f1_by_type/{kind}")[best] == pytest.approx(row["f1"])


def test_log_shows_the_configuration_and_the_hyper_parameters(log, trained):
    (text,) = log.get_data("text", "configuration")
    shown = text.text.encoded_text_string.replace("\u00a0", " ").replace("\u2060", "")
    assert yaml.safe_load(shown) == trained.config
    (record,) = log.get_data("hyper_parameters", "hparam")
    values = {info.name: info for info in record.hparam.hparamInfos}
    assert values.keys() == set(NerArguments.HYPER_PARAMETERS) and len(values) == 10
    assert values["hidden_size"].int_value == 32
    assert values["learning_rate"].float_value == pytest.approx(1e-2)
    assert values["attention"].string_value == "softmax"
    assert [info.name for info in record.hparam.metricInfos] == ["dev/precision", "dev/recall", "dev/f1"]


def test_progress_of_each_epoch_and_the_table_of_scores_are_printed(train, tmp_path, capsys):
    run = train(tmp_path / "run", num_train_epochs=2)
    printed = capsys.readouterr().out
    assert "train: 150 texts" in printed and "longest" in printed
    first = read_examples(run.config["train_file"])[0]
    lines = printed.splitlines()
    begin = lines.index("train begins, as it was read:")
    assert lines[begin + 1].startswith(f"  {first.text[:40]}") and first.surface(first.entities[0]) in lines[begin + 2]
    assert begin < next(number for number, line in enumerate(lines) if "dev precision" in line)
    assert "all (micro)" in printed and f"{run.metrics['dev']['f1']:.4f}" in printed


def test_training_that_finds_nothing_says_what_to_change_and_one_that_does_is_silent(
    train, few_texts, tmp_path, without_pictures, capsys, monkeypatch
):
    options = {"learning_rate": 0.01, "warmup_ratio": 0.05, "max_steps": 1}

    def printed(name, entities):
        for module in (evaluation, recipe):
            monkeypatch.setattr(module, "find_in_windows", lambda model, texts, *_, **__: [entities for _ in texts])
        run = train(tmp_path / name, train_file=few_texts.train, dev_file=few_texts.dev, **options)
        assert (run.metrics["dev"]["predicted"] > 0) == bool(entities)
        return capsys.readouterr().out

    assert "nothing is found in dev after 1 of 1 steps. These are too few: give" in printed("nothing", [])
    assert "nothing is found" not in printed("something", [Entity(0, 1, "person", 1.0, 0.73)])


def test_training_that_finds_nothing_in_many_steps_is_told_of_the_learning_rate():
    state = SimpleNamespace(max_steps=FEWEST_STEPS, global_step=FEWEST_STEPS)
    training = SimpleNamespace(learning_rate=0.01, warmup_ratio=0.05)
    line = recipe.nothing_found(SimpleNamespace(trainer=SimpleNamespace(state=state), training=training))
    assert "try a lower learning_rate than 0.01, or a larger warmup_ratio than 0.05" in line


def test_configurations_of_the_project_are_valid(monkeypatch):
    monkeypatch.setattr("tasks.common.process.choose_device", lambda name: "cpu")
    files = sorted((Path(__file__).resolve().parents[3] / "configs" / "ner").glob("*.yaml"))
    assert len(files) >= 4
    for path in files:
        given = {"train_file": "train", "output_dir": "run", **yaml.safe_load(path.read_text(encoding="utf-8"))}
        config, run, training, *_ = get_recipe("ner").resolve(given)
        assert config["train_file"] == run.train_file and training.num_train_epochs == config["num_train_epochs"]


@pytest.mark.parametrize("kind", ["占比%", "a/b", "a b", "🙂", "长" * 200, "a\x1b[31m\n\t\x00\u202e"])
def test_a_type_may_have_any_name(train, tmp_path, kind):
    lines = [{"text": f"增长{n}个百分点", "label": [[2, 4, kind]]} for n in range(1, 9)]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    run = train(tmp_path / "run", train_file=path, dev_file=path, num_train_epochs=1)
    assert run.metrics["dev"]["per_type"].keys() == {kind}


def test_others_may_read_the_weights_as_they_may_read_the_configuration(trained):
    modes = {(trained.model / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1
