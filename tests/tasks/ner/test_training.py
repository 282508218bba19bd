"""Training: what a run promises about its metrics and log, and what its options change.

What a run of any recipe promises (its files, seeds, cut and resume, refusals) is in tests/tasks/test_recipes.py.
"""

import json
import math
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
import yaml

from tasks.ner import evaluation, recipe
from tasks.ner.arguments import NerArguments
from tasks.ner.examples import Entity
from tasks.ner.fitting import FEWEST_STEPS
from tasks.ner.model import NerModel
from tests.tasks.ner.conftest import spans_of
from tests.tasks.ner.reading import log_of

TYPES = ["organization", "person", "place", "position", "product", "time"]
FIGURES = ("precision", "recall", "f1")
TWO_STEPS = {"per_device_train_batch_size": 23}  # an epoch


# ---- metrics


def gold_spans(record):
    """(start, end, type), half-open, straight from the CLUENER format."""
    return {
        (first, last + 1, kind)
        for kind, surfaces in record["label"].items()
        for pairs in surfaces.values()
        for first, last in pairs
    }


def test_metrics_equal_those_recomputed_from_the_predictions_against_the_gold_file(trained, corpus, dev_texts):
    assert [record["text"] for record in trained.predictions] == dev_texts
    pairs = [(gold_spans(gold), {*found}) for gold, found in zip(corpus.dev_records, spans_of(trained.predictions))]
    assert list(trained.metrics["dev"]["per_type"]) == TYPES and trained.metrics["dev"]["f1"] > 0.3
    rows = trained.metrics["dev"]["per_type"].items()
    for kinds, scores in [(TYPES, trained.metrics["dev"]), *(([kind], row) for kind, row in rows)]:
        counts = [
            sum(span[2] in kinds for spans in side for span in spans)
            for side in ([gold for gold, _ in pairs], [found for _, found in pairs], [g & f for g, f in pairs])
        ]
        assert [scores["support"], scores["predicted"], scores["correct"]] == counts
        assert scores["f1"] == pytest.approx(2 * counts[2] / max(1, counts[0] + counts[1]))
    correct = [[span[:2] for span in gold & found] for gold, found in pairs]
    assert any(a != b and a[0] <= b[0] and b[1] <= a[1] for spans in correct for a in spans for b in spans)  # nested


def test_a_test_file_of_another_format_is_scored_and_a_type_that_train_lacks_is_told(
    train_few, write, evaluate, capsys
):
    test = write('{"text": "张三在北京", "label": {"person": {"张三": [[0, 1]]}, "GPE": {"北京": [[3, 4]]}}}\n', "test")
    run = train_few(test.with_name("run"), test_file=test, num_train_epochs=8)
    assert any("GPE" in line and str(test) in line for line in capsys.readouterr().out.splitlines())
    assert (
        run.metrics["test"]["per_type"]["GPE"]["support"] == run.metrics["test"]["per_type"]["person"]["support"] == 1
    )
    scores = evaluate(test, run.model)
    del scores["worst_examples"]
    assert run.metrics["test"] == scores


def test_gold_that_the_model_cannot_find_is_told_and_counts_as_missed(evaluate, write, capsys):
    # the combining accent is no token of its own, so that no span of tokens ends between e and it
    label = {"organization": {"cafe": [[1, 4]]}, "animal": {"店": [[6, 6]]}}
    path = write(json.dumps({"text": "去cafe\u0301店", "label": label}), "marks.jsonl")
    scores = evaluate(path)
    printed = capsys.readouterr().out
    assert f"{path}:1 organization 'cafe'" in printed and "count as missed: animal" in printed
    for kind in ("organization", "animal"):
        assert scores["per_type"][kind]["support"] == 1 and scores["per_type"][kind]["correct"] == 0
    assert scores["errors"]["missed"] == scores["support"] == 2


@pytest.mark.slow
def test_there_may_be_a_thousand_types_of_any_name(train, evaluate, predict, write, tmp_path):
    types = [*(f"type {n:03}" for n in range(994)), "占比%", "a/b", "a b", "🙂", "长" * 200, "a\x1b[31m\n\t\x00\u202e"]
    lines = []
    for number in range(100):
        label = {kind: {"乙丙": [[1, 2]]} for kind in types[10 * number : 10 * number + 10]}
        record = {"text": f"甲乙丙丁戊{number}己庚", "label": {**label, types[number // 2]: {"甲": [[0, 0]]}}}
        lines.append(json.dumps(record) + "\n")
    files = {"train_file": write("".join(lines), "data"), "dev_file": write("".join(lines[::5]), "few")}
    run = train(tmp_path / "run", **files, num_train_epochs=1, per_device_train_batch_size=50)
    assert run.model_config["types"] == sorted(types) and run.metrics["dev"]["per_type"].keys() == set(types)
    assert len(predict("甲乙丙\n", run.model)) == 1 and evaluate(files["dev_file"], run.model)["support"] > 30


# ---- the log


@pytest.fixture(scope="module")
def log(trained):
    return log_of(trained.folder / "vdl")


def scalars(log, tag):
    return [record.value for record in log.get_data("scalar", tag)]


def test_the_log_has_loss_rate_norm_and_speed_of_training_and_scores_of_each_epoch(log, trained):
    loss, rates = scalars(log, "1_train/loss"), scalars(log, "1_train/learning_rate")
    assert len(loss) == int(trained.config["num_train_epochs"]) * 19 // 4  # an epoch has 19 steps
    assert loss[-1] < loss[0] / 2 and rates[0] < max(rates) <= 1e-2 and rates[-1] < 1e-3
    for tag in ("1_train/gradient_norm", "1_train/characters_per_second"):
        values = scalars(log, tag)
        assert len(values) == len(loss) and all(0 < value < math.inf for value in values)
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


@pytest.mark.parametrize(
    "found, steps", [([], [2, 6]), ([Entity(0, 1, "person", 1.0, 0.73)], [])], ids=["none", "some"]
)
def test_training_that_finds_nothing_tells_it_early_once_and_at_the_end(
    train_few, tmp_path, capsys, monkeypatch, found, steps
):
    monkeypatch.setattr(evaluation, "find_in_windows", lambda model, texts, *_, **__: [found for _ in texts])
    train_few(tmp_path / "run", num_train_epochs=3, **TWO_STEPS)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: nothing is found in dev")]
    assert [f"after {step} of 6 steps" in note for step, note in zip(steps, notes, strict=True)] == [True] * len(steps)
    assert all("--num_train_epochs 150" in note for note in notes)
    state = SimpleNamespace(max_steps=FEWEST_STEPS, global_step=FEWEST_STEPS)  # after many steps
    training = SimpleNamespace(learning_rate=0.01, warmup_ratio=0.05)
    line = recipe.nothing_found(SimpleNamespace(trainer=SimpleNamespace(state=state), training=training))
    assert "lower learning_rate than 0.01" in line and "larger warmup_ratio than 0.05" in line


# ---- options of the model


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"attention": "linear"},
        {"span_head": "dense"},
        *({"attention": "linear", "position_embedding": kind} for kind in ("none", "vo", "qkvo")),
    ],
    ids=str,
)
def test_options_of_the_model_are_chosen_by_their_key_and_kept(train, predict, tmp_path, options):
    run = train(tmp_path / "run", **options, num_train_epochs=6)
    assert {key: run.model_config[key] for key in options} == options
    assert run.metrics["dev"]["f1"] > 0.1
    found = predict("\n".join(record["text"] for record in run.predictions), run.model)
    assert spans_of(found) == spans_of(run.predictions)


@pytest.mark.parametrize("span_rope", [True, False])
def test_the_span_head_rotates_unless_span_rope_is_false(train_few, tmp_path, span_rope):
    run = train_few(tmp_path / "run", num_train_epochs=1, span_rope=span_rope)
    head = NerModel.from_pretrained(str(run.model)).head
    hidden = paddle.randn([1, 1, 32]).expand([1, 6, 32])  # tokens that differ in their place alone
    scores = head(hidden, paddle.ones([1, 6], dtype="bool"))
    spans = scores.numpy()[0][(slice(None), *np.triu_indices(6))]
    assert (np.ptp(spans, axis=1) > 1e-4).all() == span_rope


REFUSED = {  # beside those of all recipes, in tests/tasks/test_recipes.py
    "--fp16": "fp16 needs a GPU",
    "--bf16": "PADDLE_ROPE_NATIVE=0",  # tests compute without native operators
    "--early_stopping_patience 0": "early_stopping_patience must be greater than 0",
    "--masked_lm_epochs=-1": "masked_lm_epochs must be at least 0",
    "--masked_lm_files more.txt": "'masked_lm_files' is called 'texts' now",
    "--texts more.txt": "texts without masked_lm_epochs",
    "--texts more.txt --masked_lm_epochs 1": "more.txt: no such file",
    "--dev_fraction nan": "dev_fraction must be at least 0 and less than 1",
    "--dev_fraction 0 --dev_file= --tune_thresholds true": "tune_thresholds needs dev data",
    "--tune_thresholds true --threshold_for_f1 true": "tune_thresholds and threshold_for_f1",
    "--character_dropout 1": "character_dropout must be at least 0 and less than 1",
    "--features words,lexicon": "words, dictionary, gazetteer, got ['words', 'lexicon']",
    "--span_rope perhaps": "span_rope must be true or false",
    "--span_head hard": "span_head must be one of efficient, dense",
    "--head_size 15": "positive even number",
    "--max_characters 0": "max_characters must be greater than 0",
    "--max_span_length 0": "max_span_length must be an integer of 1 to",
    "--lr_scheduler_type zigzag": "lr_scheduler_type must be one of linear, ",
    "--dataloader_num_workers 100000": "dataloader_num_workers must be from 0 to 64",
    "--learning_rate nan": "learning_rate must be greater than 0",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED)
def test_a_value_out_of_range_is_one_line_and_makes_nothing(refused, config_file, words):
    assert REFUSED[words] in refused("train", config_file, "--output_dir", "run", *words.split())


UNLABELED = '{"text": "ab", "label": {}}\n'
BAD_DATA = [  # content, what reads it: train, dev or test of a run, evaluate, predict; the place
    ("", "train dev test evaluate predict", "data:1: the "),
    (UNLABELED + '{"text": \n', "train dev test evaluate predict", "data:2: "),
    ('{"text": "ab", "label": {"person": {"b": [[0, 0]]}}}\n', "train dev test evaluate", "data:1: span [0, 0]"),
    ("甲 O\n乙 Q-PER\n", "train dev test evaluate", "data:2: unknown tag 'Q-PER'"),
    (f'{{"text": "{"a" * 65}", "label": {{"person": {{"a": [[0, 0]]}}}}}}', "train", "data:1: 1 of 1 training texts"),
    (UNLABELED, "train dev evaluate", "data: no entity is labeled"),
    ("今天天气很好\n明天\n", "evaluate", "data:1: no tag in '今天天气很好'"),
    ('{"text": "a"}\n{"txt": "b"}\n', "predict", 'data:2: there is no "text"'),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("content, readers, place", BAD_DATA)
def test_bad_data_are_one_line_with_its_place(refused, write, config_file, trained, content, readers, place):
    write(content, "data")
    words = {"evaluate": [trained.model, "data"], "predict": [trained.model, "--input", "data", "--output", "new"]}
    for reader in readers.split():
        given = words.get(reader, [config_file, "--output_dir", "out/run", f"--{reader}_file", "data"])
        assert refused(reader if reader in words else "train", *given).startswith(place), reader
