"""Training: what a run promises about its metrics and log, what its options change; masked language modeling before it.

What a run of any recipe promises (its files, seeds, cut and resume, refusals) is in tests/tasks/test_recipes.py.
"""

import json

import numpy as np
import pytest
import yaml

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.tasks.ner import masked_lm
from paddle_rope.tasks.ner import recipe as recipe_module
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.features import UNKNOWN, TokenFeatures
from paddle_rope.tasks.ner.masked_lm import MASK_PROBABILITY, SECOND_PROBABILITY, STRETCH_PROBABILITY, MaskingCollator
from tests.helpers.runs import curves, log_of
from tests.tasks.ner.conftest import tokenized

TYPES = ["organization", "person", "place", "position", "product", "time"]
FIGURES = ("precision", "recall", "f1")


def test_a_type_that_train_lacks_is_told_and_counts_and_is_no_output(train_few, write, evaluate, capsys):
    test = write('{"text": "张三在北京", "label": {"person": {"张三": [[0, 1]]}, "GPE": {"北京": [[3, 4]]}}}\n', "test")
    run = train_few(test.with_name("run"), test_file=test, num_train_epochs=8)
    printed = capsys.readouterr().out
    assert any("GPE" in line and str(test) in line for line in printed.splitlines())
    assert "entities may overlap; not in train, so never found: GPE\n" in printed
    assert run.model_config["types"] == TYPES
    assert [run.metrics["test"]["per_type"][kind]["support"] for kind in ("GPE", "person")] == [1, 1]
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
def test_there_may_be_very_many_types_of_any_name(train, evaluate, predict, write, tmp_path):
    types = [*(f"type {n:03}" for n in range(194)), "占比%", "a/b", "a b", "🙂", "长" * 200, "a\x1b[31m\n\t\x00\u202e"]
    records = []
    for number in range(20):
        label = {kind: {"乙丙": [[1, 2]]} for kind in types[10 * number : 10 * number + 10]}
        records.append({"text": f"甲乙丙丁戊{number}己庚", "label": {**label, types[number]: {"甲": [[0, 0]]}}})
    files = {"train_file": write(records, "data"), "dev_file": write(records[::5], "few")}
    run = train(tmp_path / "run", **files, num_train_epochs=1)
    assert run.model_config["types"] == sorted(types) and run.metrics["dev"]["per_type"].keys() == set(types)
    assert len(predict("甲乙丙\n", run.model)) == 1 and evaluate(files["dev_file"], run.model)["support"] > 30


def test_the_log_has_scores_of_each_epoch_the_configuration_and_the_hyper_parameters(trained):
    log = log_of(trained.folder / "vdl")
    scalars = {tag: [value for _, value in values] for tag, values in curves(trained.folder / "vdl").items()}
    names = [f"dev/{name}" for name in FIGURES] + [f"dev_{name}_by_type/{kind}" for name in FIGURES for kind in TYPES]
    assert {tag for tag in scalars if tag.startswith("dev")} == set(names)
    assert {len(scalars[name]) for name in names} == {trained.config["num_train_epochs"]}
    f1 = scalars["dev/f1"]
    assert max(f1) > 0.3 and max(f1) == pytest.approx(trained.metrics["dev"]["f1"])
    (text,) = log.get_data("text", "configuration")
    shown = text.text.encoded_text_string.replace("\u00a0", " ").replace("\u2060", "")
    assert yaml.safe_load(shown) == trained.config
    (record,) = log.get_data("hyper_parameters", "hparam")
    values = {info.name: info for info in record.hparam.hparamInfos}
    assert values.keys() == set(NerArguments.HYPER_PARAMETERS)
    assert values["hidden_size"].int_value == 32 and values["attention"].string_value == "softmax"
    assert [info.name for info in record.hparam.metricInfos] == [f"dev/{name}" for name in FIGURES]


def test_training_that_finds_nothing_tells_it_at_the_end(train_few, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recipe_module, "find_in_windows", lambda model, texts, *_, **__: [[] for _ in texts])
    train_few(tmp_path / "run", num_train_epochs=1)
    assert "note: nothing is found in dev after 6 steps; give 300 steps or more" in capsys.readouterr().out


# ---- masked language modeling
FIRST_ID = 5  # the ones below are special
TOKENIZER = CharTokenizer.from_corpus([chr(0x4E00 + number) for number in range(50)] * 2, 1)


@pytest.fixture
def texts():
    """64 texts of different lengths between special tokens, with features that are nowhere unknown."""
    random = np.random.RandomState(3)
    texts = []
    for number in range(64):
        length = 10 + number % 40
        ids = random.randint(FIRST_ID, 50, length).tolist()
        inner = np.arange(length + 2)[:, None] % (length + 1) > 0
        features = TokenFeatures(
            (random.randint(UNKNOWN + 1, 9, [length + 2, 3]) * inner).astype(np.int64),
            np.packbits((random.rand(length + 2, 4) < 0.5) & inner, axis=1),
            4,
        )
        texts.append(tokenized(ids, features=features))
    return texts


def test_hidden_tokens_are_the_labels_and_features_near_them_alone_are_hidden(texts):
    plain = pad_spans(texts, TOKENIZER.pad_token_id, with_labels=False)
    masked = MaskingCollator(TOKENIZER, 1)(texts)
    hidden = masked["labels"] != IGNORED_LABEL
    assert (masked["labels"][hidden] == plain["input_ids"][hidden]).all()
    assert plain["token_mask"][hidden].all()  # no special token and no padding
    changed = masked["input_ids"] != plain["input_ids"]
    assert not changed[~hidden].any() and (masked["input_ids"][changed] == TOKENIZER.mask_token_id).all()
    assert all((masked[name] == plain[name]).all() for name in ("attention_mask", "token_mask"))
    assert masked["labels"].dtype == masked["input_ids"].dtype == np.int64
    near = np.zeros_like(hidden)
    for row, place in np.argwhere(hidden):
        near[row, max(0, place - 1) : place + 2] = True
    assert plain["flags"][near].any() and 0.1 < near.mean() < 0.6
    expected = np.where(near[:, :, None] & (plain["columns"] > 0), UNKNOWN, plain["columns"])
    assert (masked["columns"] == expected).all()
    assert (masked["flags"] == plain["flags"] & ~near[:, :, None]).all()


def test_share_of_hidden_tokens_is_the_expected_one(texts):
    collate = MaskingCollator(TOKENIZER, 1)
    batches = [collate(texts) for _ in range(40)]
    hidden = sum((batch["labels"] != IGNORED_LABEL).sum() for batch in batches)
    masked = sum((batch["input_ids"] == TOKENIZER.mask_token_id).sum() for batch in batches)
    tokens = sum(batch["token_mask"].sum() for batch in batches)
    # not hidden: no stretch begins here, and none of two begins before
    expected = 1 - (1 - STRETCH_PROBABILITY) * (1 - STRETCH_PROBABILITY * SECOND_PROBABILITY)
    assert hidden / tokens == pytest.approx(expected, abs=0.006)
    assert masked / hidden == pytest.approx(MASK_PROBABILITY, abs=0.012)


def test_each_time_other_tokens_are_hidden_and_the_seed_determines_which(texts):
    first, again, other = (MaskingCollator(TOKENIZER, seed) for seed in (1, 1, 2))
    one, two = first(texts)["labels"], first(texts)["labels"]
    assert (one != two).any() and (other(texts)["labels"] != one).any()
    assert (again(texts)["labels"] == one).all() and (again(texts)["labels"] == two).all()
    for _ in range(30):  # something is hidden in every batch
        batch = first([tokenized([7])])
        assert batch["labels"].tolist() == [[IGNORED_LABEL, 7, IGNORED_LABEL]]


@pytest.fixture
def pretrained(train_few, tmp_path, monkeypatch):
    """A run of two steps after its pretraining: (run, weights before pretraining, weights after it)."""

    def pretrained(folder="run", **more):
        states = []

        def pretrain(run, texts):
            for work in (lambda: None, lambda: masked_lm.pretrain(run, texts)):
                work()
                states.append({name: value.numpy().copy() for name, value in run.model.state_dict().items()})

        monkeypatch.setattr("paddle_rope.tasks.ner.recipe.pretrain", pretrain)
        return train_few(tmp_path / folder, **{"max_steps": 2, "logging_steps": 1, **more}), *states

    return pretrained


def test_pretraining_learns_from_more_texts_and_changes_the_encoder_alone(pretrained, tmp_path):
    more = tmp_path / "more.jsonl"
    more.write_text('{"text": "%s"}\n{"text": ""}\n' % ("龘龘的龘龘。" * 24), encoding="utf-8")
    options = {"masked_lm_epochs": 2, "per_device_train_batch_size": 1, "features": "segmentation,bigrams,dictionary"}
    run, before, after = pretrained(unlabeled_files=more, **options)  # the text without a token would be a batch
    same = {name for name in before if (before[name] == after[name]).all()}
    assert {name for name in before if name.startswith("head.")} <= same
    assert all(name.startswith("head.") or "key.bias" in name for name in same)
    assert any(name.startswith("feature_embedding.") for name in before) and before.keys() == after.keys()
    log = log_of(run.folder / "vdl")
    loss = [record.value for record in log.get_data("scalar", "pretraining/loss")]
    assert len(loss) > 2 * 45  # max_steps limits the training after it
    assert np.mean(loss[-30:]) < np.mean(loss[:10]) - 0.5
    assert len(log.get_data("scalar", "1_train/loss")) == 2
    features = json.loads((run.model / "features.json").read_text(encoding="utf-8"))
    assert {"龘龘", "的龘", "龘的"} <= set(features["vocabularies"]["bigrams"])
    number = (run.model / "vocab.txt").read_text(encoding="utf-8").split().index("龘")
    name = "roformer.token_embedding.weight"
    assert np.abs(after[name][number] - before[name][number]).max() > 1e-3


def test_dropout_is_small_in_pretraining_and_as_configured_afterwards(pretrained):
    large = {"hidden_dropout_prob": 0.3, "embedding_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.4}
    runs = {}
    for name, options in {"large": large, "small": dict.fromkeys(large, 0.1)}.items():
        run, _, runs[name] = pretrained(folder=name, masked_lm_epochs=1, **options)
        assert {key: run.model_config[key] for key in options} == options
    assert all((runs["large"][name] == value).all() for name, value in runs["small"].items())
