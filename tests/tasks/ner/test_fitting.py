"""A run that chooses its keys by the size of its data."""

import json
from pathlib import Path

import pytest

from paddle_rope.roformer import CharTokenizer, RoFormerConfig, RoFormerForMaskedLM
from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.ner.examples import Entity, Example
from tasks.ner.fitting import CHARACTERS, FEWEST_ENTITIES, FEWEST_STEPS, MOST_EPOCHS, NEAR, TABLE, fit_keys
from tasks.ner.recipe import NerRecipe

REPOSITORY = Path(__file__).resolve().parents[3]
CHOSEN = {
    "learning_rate", "hidden_dropout_prob", "embedding_dropout_prob", "character_dropout", "feature_dropout",
    "num_hidden_layers", "intermediate_size", "hidden_act", "per_device_train_batch_size", "num_train_epochs",
    "ema_decay", "masked_lm_epochs",
}  # fmt: skip
# Keys of a run that is over soon; the rest it chooses.
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1}
SOON = {"head_size": 8, "num_train_epochs": 2, "masked_lm_epochs": 1, "max_characters": 64, "device": "cpu"}


def texts(number, length=40):
    return [Example("字" * length, (), f"file:{line}") for line in range(number)]


def labeled(entities):
    """A text with so many entities."""
    return [Example("字" * entities, tuple(Entity(at, at + 1, "A") for at in range(entities)), "file:1")]


def epochs_and_steps(number, length=40, **options):
    fit = fit_keys({}, texts(number, length), **options)
    return fit.keys["num_train_epochs"], fit.steps


@pytest.mark.parametrize("number", [1, 30, 100, 300, 1000, 3000, 10000, 40000])
@pytest.mark.parametrize("length", [1, 40, 5000])
def test_any_size_is_trained_long_enough(number, length):
    fit = fit_keys({}, texts(number, length))
    assert set(fit.keys) == CHOSEN | set(NEAR)
    assert fit.keys["num_train_epochs"] == MOST_EPOCHS or fit.steps >= 500
    assert 1 <= fit.keys["per_device_train_batch_size"] <= 32
    assert (fit.steps < FEWEST_STEPS) == any(line.startswith("note:") for line in fit.lines)


@pytest.mark.parametrize("page", ["docs/ner.md", "docs/ner.zh.md"])
def test_documents_have_the_table(page):
    lines = (REPOSITORY / page).read_text(encoding="utf-8").splitlines()
    for row in TABLE[:-1]:
        assert f"| {row.texts * CHARACTERS:,} | {row.texts:,} | {in_words(row)} |" in lines
    assert any(line.endswith(f"| {in_words(TABLE[-1])} |") for line in lines)


def in_words(row):
    return " | ".join([*(f"{number:,}" for number in row[1:5]), *map(str, row[5:])])


def test_steps_stay_where_texts_grow():
    sizes = (300, 1000, 3000, 10000, 20864)
    epochs, steps = zip(*map(epochs_and_steps, sizes))
    assert list(epochs) == sorted(epochs, reverse=True)
    assert epochs[0] >= 50 and epochs[-2:] == (6, 4)
    assert all(700 <= number <= 3500 for number in steps)


def test_long_texts_make_batches_of_few_texts():
    assert [fit_keys({}, texts(100, length)).keys["per_device_train_batch_size"] for length in (40, 400, 5000)] == [
        8, 2, 1,
    ]  # fmt: skip


def test_windows_of_cut_texts_are_counted_as_texts():
    cut, short = fit_keys({}, texts(10, 5120), window=512), fit_keys({}, texts(100, 512), window=512)
    assert (cut.keys, cut.steps) == (short.keys, short.steps)


def test_several_processes_and_accumulated_batches_make_as_many_steps():
    one = epochs_and_steps(1000)
    assert epochs_and_steps(1000, processes=2)[0] == pytest.approx(2 * one[0], rel=0.1)
    assert epochs_and_steps(1000, processes=2)[1] == pytest.approx(one[1], rel=0.05)
    assert epochs_and_steps(1000, accumulated=4)[1] == pytest.approx(one[1], rel=0.05)


@pytest.mark.parametrize("key, value", [("num_hidden_layers", "4"), ("num_train_epochs", "3"), ("ema_decay", 0)])
def test_what_is_given_stands_and_is_said(key, value):
    fit = fit_keys({key: value}, texts(300))
    assert set(fit.keys) == (CHOSEN | set(NEAR)) - {key}
    assert any(line.startswith("  kept as given") and f"{key} {value}" in line for line in fit.lines)


def test_more_texts_mean_masked_language_modeling_of_bounded_length():
    def epochs(number, more):
        return fit_keys({}, texts(number), texts(more)).keys["masked_lm_epochs"]

    assert epochs(300, 0) == 0
    assert epochs(300, 1000) > epochs(300, 10000) > epochs(300, 60000) == 1


@pytest.mark.parametrize(
    "entities, chosen",
    [(FEWEST_ENTITIES - 1, {"keep_best": False}), (FEWEST_ENTITIES, {"early_stopping_patience": 41})],
)
def test_few_entities_of_dev_choose_no_epoch(entities, chosen):
    fit = fit_keys({}, texts(300), dev=labeled(entities))
    assert {key: fit.keys[key] for key in set(fit.keys) - CHOSEN - set(NEAR)} == {"threshold_for_f1": True, **chosen}
    assert any(f"dev has {entities} entities, too few" in line for line in fit.lines) == ("keep_best" in chosen)


@pytest.mark.parametrize("key, value", [("keep_best", True), ("early_stopping_patience", 3)])
def test_whoever_asks_for_the_best_epoch_gets_it(key, value):
    assert "keep_best" not in fit_keys({key: value}, texts(300), dev=labeled(1)).keys


@pytest.mark.parametrize(
    "given, patience",
    [
        ({"num_train_epochs": 60}, 20),
        ({"num_train_epochs": 4}, 3),
        ({"max_steps": 570}, 10),  # 30 epochs
        ({"keep_best": "false"}, None),
        ({"early_stopping_patience": None}, None),
    ],
)
def test_training_may_stop_after_a_third_of_its_epochs_unless_the_last_is_kept(given, patience):
    assert fit_keys(given, texts(300), dev=labeled(99)).keys.get("early_stopping_patience") == patience


@pytest.mark.parametrize("empty", [None, ""])  # as of a YAML file, and of --early_stopping_patience=
def test_a_run_that_is_not_to_stop_early_keeps_the_last_epoch_of_few_entities(empty):
    given = {"early_stopping_patience": empty}
    assert fit_keys(given, texts(300), dev=labeled(1)).keys["keep_best"] is False
    config = {**given, "train_file": "train", "output_dir": "run", "device": "cpu"}
    assert NerRecipe().resolve(config).keys.early_stopping_patience is None


def test_hopeless_keys_are_a_note_with_the_remedy():
    note = fit_keys({"num_train_epochs": 2}, texts(300)).lines[-1]
    assert note.startswith("note: 38 optimizer steps are few") and "Leave out num_train_epochs" in note
    assert fit_keys({"max_steps": "5"}, texts(300)).steps == 5


@pytest.fixture
def folder(tmp_path):
    """Writes a pretrained folder of a width."""

    def folder(width, words="字"):
        tokenizer = CharTokenizer.from_corpus(words, 1)
        path = tmp_path / f"pretrained_{width}"
        tokenizer.save_pretrained(path)
        config = RoFormerConfig(
            len(tokenizer), hidden_size=width, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
        )
        RoFormerForMaskedLM(config).save_pretrained(str(path))
        return str(path)

    return folder


def test_sizes_are_those_of_the_folder_and_its_width_decides_the_learning_rate(folder):
    narrow, wide = (fit_keys({"pretrained": folder(width)}, texts(300)).keys for width in (16, 512))
    assert not {"num_hidden_layers", "intermediate_size", "hidden_act"} & (set(narrow) | set(wide))
    assert (narrow["learning_rate"], wide["learning_rate"]) == (5e-4, 3e-5)
    assert (narrow["hidden_dropout_prob"], narrow["masked_lm_epochs"]) == (0.1, 0)
    with pytest.raises(InputError, match="no such folder"):
        fit_keys({"pretrained": "nowhere"}, texts(300))


@pytest.fixture(scope="module")
def own(few_texts, without_pictures):
    """Trains with configs/ner/own_data.yaml."""

    def own(folder, sizes=SIZES, **keys):
        config = read_run_config("configs/ner/own_data.yaml")
        files = {"train_file": str(few_texts.train), "dev_file": str(few_texts.dev), "output_dir": str(folder)}
        NerRecipe().train({**config, **files, "features": "bigrams", **SOON, **sizes, **keys})
        return read_run_config(folder / "config.yaml")

    return own


def test_run_has_plain_keys_and_is_the_run_with_these_keys(own, tmp_path, capsys):
    config = own(tmp_path / "fitted")
    printed = capsys.readouterr().out
    assert "fit_to_data: 45 training texts, " in printed and "note: 12 optimizer steps are few" in printed
    assert config["fit_to_data"] is False
    assert (config["hidden_act"], config["per_device_train_batch_size"], config["num_train_epochs"]) == ("relu", 8, 2)
    NerRecipe().train({**config, "output_dir": str(tmp_path / "plain")})
    assert "fit_to_data" not in capsys.readouterr().out
    for name in ("model/model.safetensors", "predictions_dev.jsonl"):
        assert (tmp_path / "fitted" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def test_long_text_is_cut_and_that_is_said(own, few_texts, tmp_path, capsys):
    line = json.loads(few_texts.train.read_text(encoding="utf-8").splitlines()[0])
    long = json.dumps({"text": line["text"] * 20, "label": {}}, ensure_ascii=False)
    (tmp_path / "train.jsonl").write_text(few_texts.train.read_text(encoding="utf-8") + long + "\n", encoding="utf-8")
    own(tmp_path / "run", train_file=str(tmp_path / "train.jsonl"))
    assert "1 of them are longer than max_characters: they are cut into" in capsys.readouterr().out


def test_long_text_that_is_not_to_be_cut_is_refused_before_features_are_made(own, tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.ner.recipe.read_splits", lambda *_: {"train": texts(2, 65)})
    monkeypatch.setattr("tasks.ner.recipe.WordFeatures.from_examples", None)
    with pytest.raises(InputError, match=r"file:0: 2 of 2 training texts .* max_characters 64"):
        own(tmp_path / "run", cut_long_texts=False)


def test_run_from_a_folder_says_its_sizes_nowhere(own, folder, tmp_path, few_texts):
    config = own(tmp_path / "run", sizes={}, pretrained=folder(16, few_texts.train.read_text(encoding="utf-8")))
    assert "num_hidden_layers" not in config and config["learning_rate"] == 5e-4
    model = json.loads((tmp_path / "run" / "model" / "config.json").read_text(encoding="utf-8"))
    assert (model["hidden_size"], model["hidden_dropout_prob"], model["embedding_dropout_prob"]) == (16, 0.1, 0.3)


def test_labels_of_unlabeled_texts_are_not_read(own, few_texts, tmp_path):
    """The same texts with and without labels beside the labeled ones give the same model."""
    bare = tmp_path / "bare.txt"
    records = map(json.loads, few_texts.dev.read_text(encoding="utf-8").splitlines())
    bare.write_text("".join(record["text"] + "\n" for record in records), encoding="utf-8")
    for name, path in (("labeled", few_texts.dev), ("bare", bare)):
        assert own(tmp_path / name, texts=str(path), features="bigrams,gazetteer")["texts"] == str(path)
    for name in ("model.safetensors", "features.json", "vocab.txt"):
        first, second = ((tmp_path / run / "model" / name).read_bytes() for run in ("labeled", "bare"))
        assert first == second, name
    assert str(bare) in json.loads((tmp_path / "bare" / "inputs.json").read_text(encoding="utf-8"))


def test_texts_are_refused_where_nothing_is_to_be_learned_from_them(own, tmp_path):
    with pytest.raises(InputError, match="texts without masked_lm_epochs"):
        own(tmp_path / "run", texts="more.txt", masked_lm_epochs=0)
    with pytest.raises(InputError, match="key 'masked_lm_files' is called 'texts' now"):
        own(tmp_path / "run", masked_lm_files="more.txt")
    assert not (tmp_path / "run").exists()


def test_training_that_finds_nothing_says_so_early_and_once(own, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tasks.ner.evaluation.find_in_windows", lambda model, texts, *_, **__: [[] for _ in texts])
    own(tmp_path / "run", num_train_epochs=4)
    printed = capsys.readouterr().out
    notes = [line for line in printed.splitlines() if line.startswith("note: nothing is found in dev")]
    early, last = notes
    assert "after 12 of 24 steps. These are too few: give --num_train_epochs 50 or more" in early
    assert "after 24 of 24 steps" in last
