"""Training that starts from the folder of a language model."""

import functools
import json
import shutil

import numpy as np
import paddle
import pytest
from safetensors.numpy import load, load_file, save_file

from paddle_rope.roformer import (
    CharTokenizer,
    RoFormerConfig,
    RoFormerForMaskedLM,
    RoFormerModel,
    WordTokenizer,
    load_tokenizer,
)
from paddle_rope.roformer.checkpoints.reading import read_settings
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.model_folder import write_checksums
from paddle_rope.tasks.common.training.trainer import RecipeTrainer
from paddle_rope.tasks.common.word_vectors import WordVectors
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.model import VECTOR_DEVIATION, NerModel
from paddle_rope.tasks.ner.prediction.predictor import NerPredictor
from paddle_rope.tasks.ner.recipe import NerRecipe
from tests.helpers.runs import read_json_lines, run_words
from tests.tasks.ner.conftest import TINY, spans_of

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


@pytest.fixture(scope="module")
def small_config(few_texts):
    """The configuration without the keys that a folder decides."""
    keys = {key: value for key, value in TINY.items() if key not in (*SIZES, "hidden_dropout_prob")}
    return {**keys, "train_file": few_texts.train, "dev_file": few_texts.dev, "num_train_epochs": 2}


@pytest.fixture(scope="module")
def pretrained(few_texts, tmp_path_factory):
    """``pretrained(kind)``: the folder of a new model: "ours" whose tokenizer cuts words, or one of another program,
    "roformer" or "bert", beside the one of ours from which it is made."""
    texts = [record["text"] for record in read_json_lines(few_texts.train)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = [*special, *sorted(set("".join(texts))), "公司", "大学", "先生", "昨天", "今天"]

    @functools.cache
    def pretrained(kind):
        paddle.seed(7)
        ours = tmp_path_factory.mktemp(kind) / "ours"
        positions = {"position_embedding": "learned", "learned_positions": 64} if kind == "bert" else {}
        config = RoFormerConfig(**SIZES, vocab_size=len(vocab), type_vocab_size=2, **positions)
        RoFormerForMaskedLM(config).save_pretrained(str(ours))
        (WordTokenizer if kind == "ours" else CharTokenizer)(vocab, do_lower_case=True).save_pretrained(ours)
        if kind != "ours":
            assert main(["convert-weights", str(ours), str(ours.with_name(kind)), "--to", "huggingface"]) == 0
            assert read_settings(ours.with_name(kind))["model_type"] == kind
        return ours.with_name(kind)

    return pretrained


@pytest.fixture(scope="module")
def featured(train, small_config, tmp_path_factory):
    """A run with word features. Do not change its files."""
    folder = tmp_path_factory.mktemp("featured") / "run"
    return train(folder, small_config, num_train_epochs=1, features="words,gazetteer", **SIZES)


@pytest.fixture
def at_start(monkeypatch):
    original, found = RecipeTrainer.train, {}

    def train(self, *arguments):
        found.update({name: value.numpy().copy() for name, value in self.model.state_dict().items()})
        return original(self, *arguments)

    monkeypatch.setattr(RecipeTrainer, "train", train)
    return found


@pytest.mark.parametrize("kind, options", [
    ("roformer", {"attention": "linear"}),
    ("bert", {}),
    ("ours", {"features": "words,gazetteer"}),
], ids=str)  # fmt: skip
def test_training_starts_from_a_folder(train, small_config, pretrained, predict, tmp_path, at_start, kind, options):
    folder = pretrained(kind)
    run = train(tmp_path / "run", config=small_config, pretrained=folder, **options)
    encoder = RoFormerModel.from_pretrained(str(folder.with_name("ours"))).state_dict()
    assert all((at_start[f"roformer.{name}"] == value.numpy()).all() for name, value in encoder.items())
    rest = {name.split(".")[0] for name in at_start if not name.startswith("roformer.")}
    assert rest == {"head", *(["feature_embedding"] if "features" in options else [])}
    saved = load(run.weights)
    assert any((saved[f"roformer.{name}"] != value.numpy()).any() for name, value in encoder.items())
    assert {key: run.model_config[key] for key in SIZES} == SIZES
    assert run.model_config["attention"] == options.get("attention", "softmax")
    # the written folder predicts by itself
    assert type(load_tokenizer(run.model)) is type(load_tokenizer(folder))
    assert (kind == "ours") == (type(load_tokenizer(run.model)) is not CharTokenizer)
    found = predict("\n".join(record["text"] for record in run.predictions), run.model)
    assert spans_of(found) == spans_of(run.predictions)
    if kind == "bert":
        assert run.config["max_characters"] == 62  # with [CLS] and [SEP]
        with pytest.raises(InputError, match="--max_tokens 63: learned positions end at 64; give at most 62"):
            NerPredictor(run.model, max_tokens=63)


def test_options_and_spare_embeddings_stay_and_the_saved_run_repeats(train, small_config, pretrained, tmp_path):
    """A published model may have more embeddings than tokens."""
    folder = shutil.copytree(pretrained("roformer"), tmp_path / "relu")
    vocab = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab[:-1]), encoding="utf-8")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    of_folder = {"hidden_act": "relu", "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.35}
    (folder / "config.json").write_text(json.dumps({**config, **of_folder}), "utf-8")
    given = {"attention_probs_dropout_prob": 0, "masked_lm_epochs": 1, "num_train_epochs": 1}
    run = train(tmp_path / "run", config=small_config, pretrained=folder, **given)
    assert [run.model_config[name] for name in of_folder] == ["relu", 0.25, 0]
    assert not {*SIZES, "vocab_min_count", "attention", "hidden_act"} & run.config.keys()
    assert load_tokenizer(run.model).vocab == [*vocab[:-1], f"[unused {len(vocab) - 1}]"]
    NerPredictor(run.model)(["昨天"])
    again = train(tmp_path / "again", config=run.folder / "config.yaml")
    assert again.weights == run.weights
    assert {**again.config, "output_dir": ""} == {**run.config, "output_dir": ""}


@pytest.mark.slow
def test_a_new_type_is_learned_and_the_old_ones_are_kept(train, small_config, few_texts, write, tmp_path, trained):
    records = read_json_lines(few_texts.train)
    new = [{"text": one["text"], "label": {"hero": one["label"].get("person", {})}} for one in records]
    files = {"train_file": write(new[:30], "new.jsonl"), "dev_file": write(new[30:], "dev.jsonl")}
    config = {**small_config, **files, "test_file": few_texts.dev, "pretrained": trained.model, "keep_types": True}
    kept = train(tmp_path / "kept", config)
    assert kept.model_config["types"] == sorted([*trained.model_config["types"], "hero"])
    assert kept.metrics["test"]["f1"] > 0.3  # of the old types, as nothing is labeled ``hero`` there
    # an ensemble is scored on the types of its runs
    supports = {kind: row["support"] for kind, row in kept.metrics["dev"]["per_type"].items()}
    assert sum(supports.values()) > supports["hero"] > 0
    config = {key: str(value) for key, value in config.items()}
    together = NerRecipe().score_ensemble(config, [str(kept.folder), str(kept.folder)])
    assert {kind: row["support"] for kind, row in together["dev"]["per_type"].items()} == supports
    assert together["dev"]["f1"] == kept.metrics["dev"]["f1"]
    # of other texts models have other vocabularies, and no score together
    assert NerRecipe().score_ensemble({**config, "train_texts": "30"}, [str(kept.folder)]) is None


def test_word_features_of_other_data_begin_anew_with_known_words(
    train, small_config, few_texts, write, tmp_path, at_start, featured
):
    some = write(read_json_lines(few_texts.train)[:30], "some.jsonl")
    given = {"train_file": some, "num_train_epochs": 1, "features": "words,gazetteer"}
    new = train(tmp_path / "new", small_config, pretrained=featured.model, **given)
    assert new.model_config["features"] != featured.model_config["features"]
    kept = load(featured.weights)
    assert all((at_start[name] == value).all() for name, value in kept.items() if name.startswith("roformer."))
    known, words = (WordFeatures.from_pretrained(run.model).words for run in (featured, new))
    tables = [at_start[f"feature_embedding.{name}.weight"] for name in ("tables.words", "fixed_words")]
    row_of = dict(zip(words, np.concatenate(tables)[2:]))
    vectors = kept["feature_embedding.tables.words.weight"][2:]
    assert len(tables[1]) > 0 and set(known) <= set(words)
    assert np.array([row_of[word] for word in known]) == pytest.approx(vectors * (VECTOR_DEVIATION / vectors.std()))


@pytest.mark.parametrize("rows", [np.ones([9, 64]), np.ones([9, 3]), None], ids=["other words", "another size", "none"])
def test_a_ner_model_whose_words_are_damaged_is_one_line(featured, small_config, refused, tmp_path, rows):
    folder, name = shutil.copytree(featured.model, tmp_path / "folder"), "feature_embedding.tables.words.weight"
    tensors = {**load_file(folder / "model.safetensors"), name: rows}
    save_file({one: value for one, value in tensors.items() if value is not None}, folder / "model.safetensors")
    write_checksums(folder)
    words = run_words({**small_config, "output_dir": "run", "pretrained": folder, "features": "words"})
    assert refused("train", *words).startswith(f"{folder}/features.json is damaged or does not fit the other files (")


def test_words_start_from_the_word_vectors_of_the_folder(train, small_config, pretrained, tmp_path, at_start):
    folder = shutil.copytree(pretrained("roformer"), tmp_path / "folder")
    vectors = np.random.RandomState(0).randint(-127, 127, [3, 64], dtype=np.int8)
    WordVectors(["麻婆豆腐", "公司", "经济学家"], vectors).save_pretrained(folder)
    run = train(tmp_path / "run", small_config, pretrained=folder, features="words", num_train_epochs=1)
    features = json.loads((run.model / "features.json").read_text(encoding="utf-8"))
    words, prefix = features["vocabularies"]["words"], "feature_embedding."
    table, fixed = (at_start[f"{prefix}{name}.weight"] for name in ("tables.words", "fixed_words"))
    assert len(words) > 10 and len(table) == 2 + len(words) and features["fixed_words"] == ["麻婆豆腐", "经济学家"]
    place = 2 + words.index("公司")
    rows = vectors * (VECTOR_DEVIATION / vectors.std())
    assert fixed == pytest.approx(rows[[0, 2]]) and table[place] == pytest.approx(rows[1])
    trained = load(run.weights)
    assert (trained[f"{prefix}fixed_words.weight"] == fixed).all()
    assert (trained[f"{prefix}tables.words.weight"][place] != table[place]).any()
    # a text with words of both tables
    numbers = WordFeatures.from_pretrained(run.model)("公司麻婆豆腐", [(0, 1), (2, 3)]).columns[:, :1]
    assert numbers.tolist() == [[place], [2 + len(words)]]
    table = trained[f"{prefix}tables.words.weight"]
    embedded = NerModel.from_pretrained(run.model).feature_embedding
    expected = np.tile([[table[place]], [fixed[0]]], 3)
    found = embedded(paddle.to_tensor(np.tile(numbers, 3)[:, None].astype("int64")))
    assert found.numpy() == pytest.approx(embedded.projection(paddle.to_tensor(expected)).numpy(), abs=1e-6)


def test_types_that_are_not_found_in_the_new_texts_and_word_features_are_kept(
    train, small_config, write, tmp_path, featured
):
    old = shutil.copytree(featured.model, tmp_path / "old")
    config = {**featured.model_config, "thresholds": 1000.0}
    (old / "config.json").write_text(json.dumps(config), encoding="utf-8")
    new = write([{"text": "甲乙", "label": {"hero": {"甲": [[0, 0]]}}}, {"text": "丙", "label": {}}], "new.jsonl")
    files = {"train_file": new, "dev_file": "", "dev_fraction": 0}
    kept = train(tmp_path / "kept", small_config, pretrained=old, keep_types=True, **files)
    assert kept.model_config["types"] == sorted([*config["types"], "hero"])
    assert (kept.model / "features.json").read_bytes() == (old / "features.json").read_bytes()


@pytest.mark.slow
def test_a_folder_that_does_not_fit_is_an_error_before_the_data_are_read(refused, small_config, pretrained, tmp_path):
    def fails(folder, *words):
        return refused("train", *run_words({**small_config, "output_dir": "run", "pretrained": folder}), *words)

    (tmp_path / "data").write_text("this is no labeled text")
    (tmp_path / "empty").mkdir()
    assert fails("empty", "--train_file", "data").startswith("configuration: pretrained: empty: ")
    for key in ("hidden_size", "vocab_min_count"):
        assert f"key {key!r}: sizes and tokenizer come from" in fails(pretrained("ours"), f"--{key}", "32")
    folder = shutil.copytree(pretrained("roformer"), tmp_path / "folder")
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("龘\n")
    assert "tokens, the model embeddings for" in fails("folder")
    for name in ("vocab.txt", "config.json", "model.safetensors"):
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        assert "folder" in fails("folder")
        (folder / name).write_bytes(content)
