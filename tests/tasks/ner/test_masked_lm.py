"""Masked language modeling before training."""

import json

import numpy as np
import paddle
import pytest
from visualdl import LogReader

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.ner import masked_lm
from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.features import UNKNOWN, TokenFeatures
from tasks.ner.masked_lm import MASK_PROBABILITY, SECOND_PROBABILITY, STRETCH_PROBABILITY, MaskingCollator
from tasks.ner.model import NerConfig, NerModel

PAD, CLS, SEP = 0, 2, 3
FIRST_ID = 5


@pytest.fixture
def tokenizer():
    return CharTokenizer.from_corpus([chr(0x4E00 + number) for number in range(50)] * 2, 1)


@pytest.fixture
def texts():
    """64 texts of different lengths between special tokens, with features that are nowhere unknown."""
    random = np.random.RandomState(3)
    texts = []
    for number in range(64):
        length = 10 + number % 40
        ids = [CLS, *random.randint(FIRST_ID, 50, length).tolist(), SEP]
        offsets = [(0, 0), *((start, start + 1) for start in range(length)), (0, 0)]
        inner = np.arange(length + 2)[:, None] % (length + 1) > 0
        features = TokenFeatures(
            (random.randint(UNKNOWN + 1, 9, [length + 2, 3]) * inner).astype(np.int64),
            np.packbits((random.rand(length + 2, 4) < 0.5) & inner, axis=1),
            4,
        )
        texts.append(TokenizedText(ids, offsets, [], features))
    return texts


@pytest.fixture
def plain(tokenizer, texts):
    return SpanCollator(tokenizer.pad_token_id, with_labels=False)(texts)


@pytest.fixture
def masked(tokenizer, texts):
    return MaskingCollator(tokenizer, 1)(texts)


# ---- what is hidden


def test_labels_are_the_true_ids_of_hidden_tokens_of_the_text(tokenizer, plain, masked):
    hidden = masked["labels"] != IGNORED_LABEL
    assert (masked["labels"][hidden] == plain["input_ids"][hidden]).all()
    assert plain["token_mask"][hidden].all()  # no special token and no padding
    assert (masked["input_ids"][~hidden] == plain["input_ids"][~hidden]).all()
    changed = masked["input_ids"] != plain["input_ids"]
    assert (masked["input_ids"][changed] == tokenizer.mask_token_id).all()
    for name in ("attention_mask", "token_mask"):
        assert (masked[name] == plain[name]).all()
    assert masked["labels"].dtype == masked["input_ids"].dtype == np.int64


def test_share_of_hidden_tokens_is_the_expected_one(tokenizer, texts):
    collate = MaskingCollator(tokenizer, 1)
    hidden = tokens = masked = 0
    for _ in range(40):
        batch = collate(texts)
        is_hidden = batch["labels"] != IGNORED_LABEL
        hidden += is_hidden.sum()
        masked += (batch["input_ids"] == tokenizer.mask_token_id).sum()
        tokens += batch["token_mask"].sum()
    # not hidden: no stretch begins here, and none of two begins before
    expected = 1 - (1 - STRETCH_PROBABILITY) * (1 - STRETCH_PROBABILITY * SECOND_PROBABILITY)
    assert tokens > 60000
    assert hidden / tokens == pytest.approx(expected, abs=0.006)
    assert masked / hidden == pytest.approx(MASK_PROBABILITY, abs=0.012)


def test_features_are_hidden_at_hidden_tokens_and_beside_them_and_nowhere_else(plain, masked):
    hidden = masked["labels"] != IGNORED_LABEL
    near = np.zeros_like(hidden)
    for row, place in np.argwhere(hidden):
        near[row, max(0, place - 1) : place + 2] = True
    assert (masked["columns"][~near] == plain["columns"][~near]).all()
    assert (masked["flags"][~near] == plain["flags"][~near]).all()
    there = plain["columns"] > 0
    assert (masked["columns"][near[:, :, None] & there] == UNKNOWN).all()
    assert (masked["columns"][~there] == 0).all()  # padding stays
    assert not masked["flags"][near].any()
    assert plain["flags"][near].any() and 0.1 < near.mean() < 0.6


def test_each_time_other_tokens_are_hidden_and_the_seed_says_which(tokenizer, texts):
    first, again, other = MaskingCollator(tokenizer, 1), MaskingCollator(tokenizer, 1), MaskingCollator(tokenizer, 2)
    one, two = first(texts), first(texts)
    assert (one["labels"] != two["labels"]).any()
    assert (again(texts)["labels"] == one["labels"]).all() and (again(texts)["input_ids"] == two["input_ids"]).all()
    assert (other(texts)["labels"] != one["labels"]).any()


def test_texts_are_not_changed(tokenizer, texts):
    before = [(list(text.ids), text.features.columns.copy(), text.features.flags.copy()) for text in texts]
    MaskingCollator(tokenizer, 1)(texts)
    for text, (ids, columns, flags) in zip(texts, before):
        assert text.ids == ids
        assert (text.features.columns == columns).all() and (text.features.flags == flags).all()


def test_something_is_hidden_in_every_batch(tokenizer):
    text = TokenizedText([CLS, 7, SEP], [(0, 0), (0, 1), (0, 0)], [])
    collate = MaskingCollator(tokenizer, 1)
    for _ in range(30):
        batch = collate([text])
        assert batch["labels"].tolist() == [[IGNORED_LABEL, 7, IGNORED_LABEL]]
        assert "columns" not in batch and "flags" not in batch


# ---- in a run


def test_texts_without_a_token_are_left_out(train, tmp_path, without_pictures):
    records = '{"text": "王明在青川市", "entities": [{"start": 0, "end": 2, "type": "person"}]}\n' * 6
    records += '{"text": "", "entities": []}\n' * 3
    (tmp_path / "texts.jsonl").write_text(records, encoding="utf-8")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    train(
        tmp_path / "run", train_file=str(tmp_path / "texts.jsonl"), dev_file="", dev_fraction=0, masked_lm_epochs=1,
        num_train_epochs=1, per_device_train_batch_size=1, **sizes,
    )  # fmt: skip
    assert (tmp_path / "run/metrics.json").is_file()


@pytest.fixture
def states(monkeypatch):
    """Weights of the model before and after pretraining."""
    original, states = masked_lm.pretrain, []

    def pretrain(model, *arguments, **options):
        states.append({name: value.numpy().copy() for name, value in model.state_dict().items()})
        original(model, *arguments, **options)
        states.append({name: value.numpy().copy() for name, value in model.state_dict().items()})

    monkeypatch.setattr("tasks.ner.recipe.pretrain", pretrain)
    return states


def test_pretraining_learns_to_predict_and_changes_the_encoder_alone(
    train, few_texts, tmp_path, without_pictures, states
):
    options = {"num_train_epochs": 1, "max_steps": 2, "features": "segmentation,bigrams,dictionary"}
    run = train(
        tmp_path / "run", train_file=few_texts.train, dev_file=few_texts.dev, masked_lm_epochs=12, logging_steps=1,
        **options,
    )  # fmt: skip
    before, after = states
    same = {name for name in before if (before[name] == after[name]).all()}
    assert {name for name in same if not name.startswith("head.")} <= {name for name in before if "key.bias" in name}
    assert {name for name in before if name.startswith("head.")} <= same
    assert any(name.startswith("feature_embedding.") for name in before)
    (path,) = (run.folder / "vdl").iterdir()
    log = LogReader(file_path=str(path))
    loss = [record.value for record in log.get_data("scalar", "pretraining/loss")]
    assert len(loss) == 12 * 6  # whatever limits the training proper
    assert np.mean(loss[-6:]) < np.mean(loss[:6]) - 0.5
    assert len(log.get_data("scalar", "1_train/loss")) == 2
    assert not any("lm_head" in name for name in after)


def test_dropout_is_small_in_pretraining_and_the_configurations_own_afterwards(
    train, few_texts, tmp_path, without_pictures, monkeypatch
):
    configs = []

    class Recorded(masked_lm.NerMaskedLM):
        def __init__(self, model):
            configs.append(model.config)
            super().__init__(model)

    monkeypatch.setattr(masked_lm, "NerMaskedLM", Recorded)
    run = train(
        tmp_path / "run", train_file=few_texts.train, dev_file=few_texts.dev, masked_lm_epochs=1, num_train_epochs=1,
        max_steps=1, hidden_dropout_prob=0.3, embedding_dropout_prob=0.5, attention_probs_dropout_prob=0.05,
    )  # fmt: skip
    names = ("hidden_dropout_prob", "embedding_dropout_prob", "attention_probs_dropout_prob")
    (config,) = configs
    assert [getattr(config, name) for name in names] == [0.1, 0.1, 0.05]
    saved = json.loads((run.model / "config.json").read_text(encoding="utf-8"))
    assert [saved[name] for name in names] == [0.3, 0.5, 0.05]


def test_more_texts_are_learned_from_and_their_values_known(train, few_texts, tmp_path, without_pictures, states):
    more = tmp_path / "more.txt"
    more.write_text("龘龘的龘龘。" * 24 + "\n", encoding="utf-8")
    run = train(
        tmp_path / "run", train_file=few_texts.train, dev_file=few_texts.dev, masked_lm_epochs=2, texts=more,
        num_train_epochs=1, max_steps=1, features="bigrams",
    )  # fmt: skip
    assert "龘" in (run.model / "vocab.txt").read_text(encoding="utf-8").split()
    vocabularies = json.loads((run.model / "features.json").read_text(encoding="utf-8"))["vocabularies"]
    assert {"龘龘", "的龘", "龘的"} <= set(vocabularies["bigrams"])
    before, after = states
    number = (run.model / "vocab.txt").read_text(encoding="utf-8").split().index("龘")
    name = "roformer.token_embedding.weight"
    assert np.abs(after[name][number] - before[name][number]).max() > 1e-3


def test_model_with_padding_has_the_loss_of_its_texts_one_by_one(few_texts):
    """Mean over the hidden tokens, whatever stands beside them in a batch."""
    model = NerModel(
        NerConfig(
            types=["a"], vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16, head_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
    )  # fmt: skip
    language_model = masked_lm.NerMaskedLM(model)
    assert language_model.roformer is model.roformer

    def loss(*lengths):
        batch = {"input_ids": np.zeros([len(lengths), max(lengths)], np.int64)}
        batch["attention_mask"] = batch["token_mask"] = np.arange(max(lengths)) < np.array(lengths)[:, None]
        batch["labels"] = np.full([len(lengths), max(lengths)], IGNORED_LABEL)
        for row, length in enumerate(lengths):
            batch["input_ids"][row, :length] = np.arange(5, 5 + length)
            batch["labels"][row, length // 2] = 7 + length
        return float(language_model(**{name: paddle.to_tensor(value) for name, value in batch.items()})[0])

    assert loss(4, 9) == pytest.approx((loss(4) + loss(9)) / 2, rel=1e-5)
