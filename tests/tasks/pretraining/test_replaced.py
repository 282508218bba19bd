"""Replaced-token detection beside a slow form."""

import numpy as np
import paddle
import pytest

from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
from paddle_rope.tasks.pretraining.arguments import Stage
from paddle_rope.tasks.pretraining.batches import StageBatches
from paddle_rope.tasks.pretraining.replaced import DETECTION_WEIGHT, ReplacedTokenDetection


@pytest.fixture
def task(sample):
    paddle.seed(1)
    config = RoFormerConfig(
        vocab_size=len(sample.tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return ReplacedTokenDetection(RoFormerForMaskedLM(config))


@pytest.fixture
def batch(sample):
    batch = StageBatches(sample.stream, [Stage(48, 6, 1)], sample.tokenizer, sample.masking, seed=3)[0]
    return {name: paddle.to_tensor(array) for name, array in batch.items()}


def test_loss_is_that_of_the_slow_form(task, batch):
    paddle.seed(5)
    loss, scores = task(**batch)
    paddle.seed(5)
    others = {name: batch[name] for name in ("positions", "segment_ids", "cu_seqlens")}
    guesses = task.generator(batch["input_ids"], **others).numpy()
    labels, segments = batch["labels"].numpy(), batch["segment_ids"].numpy()
    hidden = labels >= 0
    noise = paddle.uniform([hidden.sum(), guesses.shape[-1]], min=1e-9, max=1.0).numpy()
    ids, replaced, of_generator = batch["input_ids"].numpy().copy(), np.zeros(labels.shape), []
    for number, (row, column) in enumerate(np.argwhere(hidden)):
        logits = guesses[row, column].astype("float64")
        drawn = int((logits - np.log(-np.log(noise[number]))).argmax())
        ids[row, column], replaced[row, column] = drawn, drawn != labels[row, column]
        of_generator.append(np.log(np.exp(logits).sum()) - logits[labels[row, column]])
    states = task.encoder(paddle.to_tensor(ids), **others)
    expected = task.score(task.dense(states)).squeeze(-1).numpy().astype("float64")
    np.testing.assert_allclose(scores.numpy(), expected, atol=1e-5)
    signs = np.where(replaced == 1, 1, -1)
    detection = np.log1p(np.exp(-signs * expected))[segments >= 0].mean()
    assert float(loss) == pytest.approx(np.mean(of_generator) + DETECTION_WEIGHT * detection, rel=1e-5)
    assert 0 < replaced.sum() <= hidden.sum()


def test_generator_and_encoder_learn_one_token_embedding(task, batch):
    assert task.generator.roformer.token_embedding is task.encoder.token_embedding
    names = [name for name, _ in task.named_parameters()]
    assert sum("token_embedding" in name for name in names) == 1
    task(**batch)[0].backward()
    missing = [name for name, weight in task.named_parameters() if weight.grad is None]
    assert not missing


def test_tokens_are_drawn_with_the_probabilities_of_the_generator(task):
    logits = paddle.log(paddle.to_tensor([0.5, 0.3, 0.2])).expand([20000, 3])
    places = paddle.arange(20000)
    paddle.seed(2)
    ids, replaced = task._fill_in(
        paddle.full([1, 20000], 9, "int64"), paddle.zeros([1, 20000], "int64"), places, logits
    )
    shares = np.bincount(ids.numpy().reshape(-1)) / 20000
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.02)
    np.testing.assert_array_equal(replaced.numpy(), ids.numpy() != 0)
