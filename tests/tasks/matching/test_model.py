"""The model's scores, losses and configuration."""

import numpy as np
import paddle
import pytest

from tasks.matching.batching import Sequence, pad_sequences
from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss
from tasks.matching.model import MatchingConfig, MatchingModel
from tests.paddle_rope.roformer.small_models import randomise

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
GRADES = {"pairs": [0, 1], "grades": [0.0, 5.0], "triples": None}


def build(architecture, task, **options):
    grades = GRADES[task] if architecture == "cross_encoder" else None
    config = MatchingConfig(**SIZES, architecture=architecture, task=task, grades=grades, **options)
    return randomise(MatchingModel(config), 0.3)


def sequences(count):
    return [Sequence(np.random.randint(5, 30, np.random.randint(3, 9)), None) for _ in range(count)]


def tensors(rows):
    return {name: paddle.to_tensor(array) for name, array in pad_sequences(rows, 0).items()}


@pytest.mark.parametrize("task", GRADES)
@pytest.mark.parametrize("architecture", ["cross_encoder", "bi_encoder"])
def test_loss_is_that_of_the_scores_of_each_example_alone_and_reaches_every_weight(architecture, task):
    model, batch = build(architecture, task, scale=7.0), 4
    parts = {"cross_encoder": 1, "bi_encoder": 2}[architecture] + (task == "triples")
    rows = sequences(parts * batch)
    labels = paddle.to_tensor([4.0, 0.0, 2.5, 5.0] if task == "grades" else [1.0, 0.0, 0.0, 1.0])
    loss, scores = model(**tensors(rows), labels=labels)
    alone = [model.represent(**tensors([row]))[0] for row in rows]  # without padding
    columns = [paddle.stack(alone[part * batch : (part + 1) * batch]) for part in range(parts)]
    if architecture == "bi_encoder":
        assert all(float(vector.norm()) == pytest.approx(1, abs=1e-5) for vector in alone)
        columns = [(columns[0] * other).sum(axis=-1) for other in columns[1:]]
    np.testing.assert_allclose(scores.numpy(), paddle.stack(columns).numpy(), atol=1e-5)
    if task == "triples":
        scale = 7.0 if architecture == "bi_encoder" else 1.0
        expected = ranking_loss(scale * columns[0], scale * columns[1], labels)
    elif architecture == "bi_encoder":
        expected = cosent_loss(columns[0], labels, 7.0)
    else:
        expected = grade_loss(columns[0], labels / (5 if task == "grades" else 1))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4) and loss.item() > 0
    loss.backward()
    # key biases add the same to all scores of a query; the last bias of a cross-encoder is the same for B and C
    without = ("key.bias", *(["head.output.bias"] if task == "triples" else []))
    for name, parameter in model.named_parameters():
        assert name.endswith(without) or float(parameter.grad.abs().max()) > 1e-7, name


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_padding_does_not_count(pooling):
    model = build("bi_encoder", "pairs", pooling=pooling)
    short, long = sequences(1)[0], Sequence(np.arange(5, 25), None)
    alone = model.represent(**tensors([short])).numpy()
    np.testing.assert_allclose(model.represent(**tensors([short, long])).numpy()[:1], alone, atol=1e-5)


def test_token_types_tell_the_texts_of_a_cross_encoder_apart():
    model = build("cross_encoder", "pairs", token_type_ids=True, type_vocab_size=2)
    ids = np.array([5, 10, 6, 10, 6])
    logits = [model.represent(**tensors([Sequence(ids, np.array(types))])) for types in ([0, 0, 0, 1, 1], [0] * 5)]
    assert abs((logits[0] - logits[1]).item()) > 1e-4


@pytest.mark.parametrize(
    "options",
    [
        {"architecture": "siamese"},
        {"architecture": ["cross_encoder"]},
        {"task": "quadruples"},
        {"pooling": "max"},
        {"max_tokens": 4},
        {"max_tokens": 5.5},
        {"scale": 0},
        {"scale": float("nan")},
        {"threshold": "0.5"},
        {"threshold": float("inf")},
        {"grades": 3},
        {"grades": [0, float("nan")]},
        {"grades": [1, 1]},
        {"grades": [0]},
        {"grades": [0, 1, 2]},
        {"token_type_ids": "no"},
        {"token_type_ids": True},  # without token types
        {"token_type_ids": True, "type_vocab_size": 2, "architecture": "bi_encoder"},
    ],
    ids=str,
)
def test_configuration_that_cannot_be_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MatchingConfig(**{**SIZES, **options})
