"""Training that starts from the folder of a language model."""

import json
import shutil

import numpy as np
import paddle
import paddlenlp.transformers as paddlenlp
import pytest
import train_ner
from paddlenlp.transformers.roformer.configuration import RoFormerConfig as PaddlenlpConfig
from safetensors.numpy import load

from paddle_rope.roformer import CharTokenizer, RoFormerConfig, RoFormerForMaskedLM, RoFormerModel, load_tokenizer
from paddle_rope.roformer.tokenization.files import write_tokenizer
from tasks.common.training.trainer import RecipeTrainer
from tests.helpers.verbs import verb

convert_weights = verb("convert-weights")

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
SIZE_WORDS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


@pytest.fixture(scope="module")
def small_config(few_texts, tmp_path_factory):
    """A configuration without the keys of sizes."""
    path = tmp_path_factory.mktemp("small") / "small.yaml"
    lines = [f"train_file: {few_texts.train}", f"dev_file: {few_texts.dev}", "max_characters: 64", "head_size: 16"]
    lines += ["device: cpu", "num_train_epochs: 2", "per_device_train_batch_size: 8", "learning_rate: 1e-2"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def vocab(few_texts):
    """The characters of the texts, and words as in RoFormer's vocabulary."""
    texts = [json.loads(line)["text"] for line in few_texts.train.read_text("utf-8").splitlines()]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return [*special, *sorted(set("".join(texts))), "公司", "大学", "先生", "昨天", "今天"]


def write_pretrained(folder, kind, vocab):
    """A folder of a new model as ``kind`` says it is written there; ``-word`` has a tokenizer that cuts words."""
    paddle.seed(7)
    form, _, words = kind.partition("-")
    if form == "paddlenlp":
        config = PaddlenlpConfig(**SIZES, vocab_size=len(vocab), embedding_size=32, max_position_embeddings=128)
        paddlenlp.RoFormerForMaskedLM(config).save_pretrained(str(folder))
        write_tokenizer(folder, "RoFormerTokenizer", vocab, True)
        if not words:
            path = folder / "tokenizer_config.json"
            path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "use_jieba": False}), "utf-8")
        return
    ours = folder if form == "ours" else folder.with_name("ours_before")
    config = RoFormerConfig(**SIZES, vocab_size=len(vocab), type_vocab_size=2)
    RoFormerForMaskedLM(config).save_pretrained(str(ours))
    write_tokenizer(ours, "WordTokenizer" if words else "CharTokenizer", vocab, True)
    if form == "huggingface":
        assert convert_weights.main([str(ours), str(folder), "--to", "huggingface"]) == 0


@pytest.fixture(scope="module")
def pretrained(vocab, tmp_path_factory):
    """``pretrained(kind)``: the folder, made when first asked for."""
    folders = {}

    def pretrained(kind):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind) / "pretrained"
            write_pretrained(folders[kind], kind, vocab)
        return folders[kind]

    return pretrained


@pytest.fixture
def at_start(monkeypatch):
    """The weights with which training begins."""
    original, found = RecipeTrainer.train, {}

    def train(self, *arguments):
        found.update({name: value.numpy().copy() for name, value in self.model.state_dict().items()})
        return original(self, *arguments)

    monkeypatch.setattr(RecipeTrainer, "train", train)
    return found


@pytest.mark.parametrize(
    "kind, options",
    [
        ("huggingface", {}),
        ("huggingface-word", {"attention": "linear"}),
        ("paddlenlp", {"attention": "linear", "features": "segmentation,bigrams"}),
        ("paddlenlp-word", {}),
        ("ours-word", {"features": "words,gazetteer"}),
    ],
    ids=str,
)
def test_training_starts_from_the_weights_of_a_folder(
    train, small_config, pretrained, predict, tmp_path, at_start, without_pictures, kind, options
):
    folder = pretrained(kind)
    run = train(tmp_path / "run", config=small_config, pretrained=folder, **options)
    encoder = RoFormerModel.from_pretrained(str(folder)).state_dict()
    assert all((at_start[f"roformer.{name}"] == value.numpy()).all() for name, value in encoder.items())
    rest = {name for name in at_start if not name.startswith("roformer.")}
    assert {name.split(".")[0] for name in rest} == {"head", *(["feature_embedding"] if "features" in options else [])}
    saved = load(run.weights)
    assert any((saved[f"roformer.{name}"] != value.numpy()).any() for name, value in encoder.items())
    assert {key: run.model_config[key] for key in SIZES} == SIZES
    assert run.model_config["attention"] == options.get("attention", "softmax")
    # the written folder stands alone
    assert type(load_tokenizer(run.model)) is type(load_tokenizer(folder))
    assert ("word" in kind) == (type(load_tokenizer(run.model)) is not CharTokenizer)
    lines = (run.folder / "predictions_dev.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    found = predict("\n".join(record["text"] for record in records), run.model)
    assert [record["text"] for record in found] == [record["text"] for record in records]
    for one, other in zip(found, records):
        assert [(e["start"], e["end"], e["type"]) for e in one["entities"]] == [
            (e["start"], e["end"], e["type"]) for e in other["entities"]
        ]
        assert np.allclose([e["score"] for e in one["entities"]], [e["score"] for e in other["entities"]], atol=1e-3)


def test_resolved_configuration_fed_back_gives_the_same_run(
    train, small_config, pretrained, tmp_path, without_pictures
):
    options = {"hidden_dropout_prob": 0.1, "masked_lm_epochs": 1, "num_train_epochs": 1}
    run = train(tmp_path / "run", config=small_config, pretrained=pretrained("huggingface"), **options)
    assert run.config["hidden_dropout_prob"] == 0.1 and run.model_config["hidden_dropout_prob"] == 0.1
    assert not {*SIZE_WORDS, "vocab_min_count", "attention"} & run.config.keys()
    again = train(tmp_path / "again", config=run.folder / "config.yaml")
    assert again.weights == run.weights
    assert {**again.config, "output_dir": ""} == {**run.config, "output_dir": ""}


def test_options_of_the_folder_stay_unless_they_are_given(train, small_config, pretrained, tmp_path, without_pictures):
    folder = shutil.copytree(pretrained("huggingface"), tmp_path / "relu")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    changed = {**config, "hidden_act": "relu", "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.35}
    (folder / "config.json").write_text(json.dumps(changed), "utf-8")
    run = train(
        tmp_path / "run", config=small_config, pretrained=folder, num_train_epochs=1, attention_probs_dropout_prob=0
    )
    names = ("hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob")
    assert [run.model_config[name] for name in names] == ["relu", 0.25, 0]


# ---- what cannot be


@pytest.fixture
def pretrained_fails(fails, small_config):
    return lambda folder, *words: fails(train_ner, small_config, "--output_dir", "run", "--pretrained", folder, *words)


@pytest.mark.parametrize("key", [*SIZE_WORDS, "vocab_min_count"])
def test_sizes_beside_a_folder_are_an_error(pretrained_fails, pretrained, key):
    folder = pretrained("ours")
    message = pretrained_fails(folder, f"--{key}", 32)
    assert message == f"key {key!r}: sizes and tokenizer come from the folder {folder}; leave it out"


def test_folder_that_is_not_there_or_is_no_model_is_an_error(pretrained_fails, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in ("missing", "empty"):
        assert pretrained_fails(folder).startswith(f"configuration: pretrained: {folder}: ")


@pytest.mark.parametrize("name", ["vocab.txt", "config.json", "model.safetensors"])
def test_folder_without_one_of_its_files_is_an_error(pretrained_fails, pretrained, tmp_path, name):
    folder = shutil.copytree(pretrained("huggingface"), tmp_path / "folder")
    (folder / name).unlink()
    assert "folder" in pretrained_fails("folder")


def test_vocabulary_that_is_not_the_models_is_an_error(pretrained_fails, pretrained, tmp_path, vocab):
    folder = shutil.copytree(pretrained("huggingface"), tmp_path / "folder")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in [*vocab, "龘"]), "utf-8")
    message = pretrained_fails("folder")
    assert f"the tokenizer has {len(vocab) + 1} tokens, the model embeddings for {len(vocab)}" in message


def test_options_that_the_folder_cannot_have_are_an_error(pretrained_fails, pretrained):
    folder = pretrained("ours")
    assert "attention must be " in pretrained_fails(folder, "--attention", "hard")
    assert "position_embedding must be " in pretrained_fails(folder, "--position_embedding", "kq")
