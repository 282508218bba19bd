"""The model's scores, losses and configuration."""

import numpy as np
import paddle
import pytest

from paddle_rope.roformer import Encoding
from tasks.matching.batching import MatchingDataset, Sequence, pad_sequences
from tasks.matching.examples import Example
from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss
from tasks.matching.model import MatchingConfig, MatchingModel
from tasks.matching.prediction import represent_sequences, score_dataset
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
MODES = [(a, t) for a in ("cross_encoder", "bi_encoder") for t in ("pairs", "grades", "triples")]


def build(architecture, task, **options):
    grades = [0.0, 5.0] if task == "grades" else [0, 1]
    if architecture == "bi_encoder" or task == "triples":
        grades = None
    model = MatchingModel(MatchingConfig(**SIZES, architecture=architecture, task=task, grades=grades, **options))
    return randomise(model, 0.3)


def sequences(count):
    return [Sequence(np.random.randint(5, 30, np.random.randint(3, 9)), None) for _ in range(count)]


def tensors(rows):
    return {name: paddle.to_tensor(array) for name, array in pad_sequences(rows, 0).items()}


@pytest.mark.parametrize("architecture, task", MODES)
def test_loss_is_that_of_the_scores_of_each_example_alone(architecture, task):
    model, batch = build(architecture, task, scale=7.0), 4
    parts = {"cross_encoder": 1, "bi_encoder": 2}[architecture] + (task == "triples")
    rows = sequences(parts * batch)
    labels = paddle.to_tensor([4.0, 0.0, 2.5, 5.0] if task == "grades" else [1.0, 0.0, 0.0, 1.0])
    loss, scores = model(**tensors(rows), labels=labels)
    assert scores.shape == [2 if task == "triples" else 1, batch]
    alone = [model.represent(**tensors([row]))[0] for row in rows]  # without padding
    of_example = [[alone[part * batch + index] for part in range(parts)] for index in range(batch)]
    if architecture == "bi_encoder":
        assert all(float(vector.norm()) == pytest.approx(1, abs=1e-5) for vector in alone)
        columns = [[first.dot(other) for other in others] for first, *others in of_example]
    else:
        columns = of_example
    expected = paddle.stack([paddle.stack([row[c].reshape([]) for row in columns]) for c in range(len(columns[0]))])
    np.testing.assert_allclose(scores.numpy(), expected.numpy(), atol=1e-5)
    if task == "triples":
        scale = 7.0 if architecture == "bi_encoder" else 1.0
        expected_loss = ranking_loss(scale * expected[0], scale * expected[1], labels)
    elif architecture == "bi_encoder":
        expected_loss = cosent_loss(expected[0], labels, 7.0)
    else:
        expected_loss = grade_loss(expected[0], labels / (5 if task == "grades" else 1))
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-4)
    assert float(loss) > 0


@pytest.mark.parametrize("architecture, task", MODES)
def test_every_weight_has_a_gradient(architecture, task):
    model = build(architecture, task)
    rows = sequences(12)
    batch = 12 // ({"cross_encoder": 1, "bi_encoder": 2}[architecture] + (task == "triples"))
    loss, _ = model(**tensors(rows), labels=paddle.to_tensor(np.arange(batch) % 2, dtype="float32"))
    loss.backward()
    # key biases add the same to all scores of a query; the last bias of a cross-encoder is the same for B and C
    without = ("key.bias", *(["head.output.bias"] if task == "triples" else []))
    for name, parameter in model.named_parameters():
        if not name.endswith(without):
            assert float(parameter.grad.abs().max()) > 1e-7, name


class Digits:
    """A tokenizer of digits."""

    def encode(self, text, pair=None, max_tokens=None):
        ids = [5, *(10 + int(c) for c in text), 6, *([10 + int(c) for c in pair] + [6] if pair else [])][:max_tokens]
        return Encoding(ids, [(0, 0)] * len(ids), [0] * len(ids))


@pytest.mark.parametrize("architecture, task", MODES)
def test_scores_of_a_data_set_do_not_depend_on_the_batches(architecture, task):
    model = build(architecture, task)
    tuples = [("1", "234567", "89"), ("22", "1", "2"), ("123456789", "12", "1"), ("1", "1", "3")]
    tuples = tuples if task == "triples" else [texts[:2] for texts in tuples]
    data = MatchingDataset([Example(texts, None, "") for texts in tuples], Digits(), model.config)
    scores = score_dataset(model, data, batch_size=32)
    assert scores.dtype == np.float32 and scores.shape == (4, 2 if task == "triples" else 1)
    np.testing.assert_allclose(score_dataset(model, data, batch_size=1), scores, atol=1e-5)
    if architecture == "bi_encoder":
        assert np.abs(scores).max() <= 1 + 1e-6
        assert scores[3, 0] == pytest.approx(1, abs=1e-5)  # of a text and itself
    elif task != "triples":
        logits = represent_sequences(model, data.sequences, 32)[data.rows]
        highest = 5 if task == "grades" else 1
        np.testing.assert_allclose(scores, highest / (1 + np.exp(-logits)), rtol=1e-4)
    else:
        np.testing.assert_array_equal(scores, represent_sequences(model, data.sequences, 32)[data.rows])


def test_scoring_leaves_training_mode_as_it_was():
    model = build("bi_encoder", "pairs")
    for training in (True, False):
        model.train() if training else model.eval()
        represent_sequences(model, sequences(2), 2)
        assert model.training is training


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_padding_does_not_count_in_either_pooling(pooling):
    model = build("bi_encoder", "pairs", pooling=pooling)
    short, long = sequences(2)[0], Sequence(np.arange(5, 25), None)
    alone = model.represent(**tensors([short])).numpy()
    np.testing.assert_allclose(model.represent(**tensors([short, long])).numpy()[:1], alone, atol=1e-5)


def test_token_types_tell_the_texts_of_a_cross_encoder_apart():
    model = build("cross_encoder", "pairs", token_type_ids=True, type_vocab_size=2)
    ids = np.array([5, 10, 6, 10, 6])
    given = Sequence(ids, np.array([0, 0, 0, 1, 1]))
    typed, other = (model.represent(**tensors([s])).numpy() for s in (given, Sequence(ids, np.zeros(5, np.int64))))
    assert np.abs(typed - other).max() > 1e-4


@pytest.mark.parametrize(
    "options, message",
    [
        ({"architecture": "siamese"}, "architecture must be one of cross_encoder, bi_encoder"),
        ({"task": "quadruples"}, "task must be one of pairs, grades, triples"),
        ({"architecture": ["cross_encoder"]}, "architecture must be one of"),
        ({"max_tokens": 4}, "max_tokens must be an integer of 5 to"),
        ({"max_tokens": 5.5}, "max_tokens must be an integer"),
        ({"token_type_ids": "no"}, "token_type_ids must be true or false"),
        ({"scale": 0}, "scale must be a number of"),
        ({"scale": float("nan")}, "scale must be a number of"),
        ({"threshold": "0.5"}, "threshold must be a number"),
        ({"threshold": float("inf")}, "threshold must be a number"),
        ({"grades": 3}, "grades must be a list of at most 2"),
        ({"grades": [0, float("nan")]}, "grades must be a list of at most 2"),
        ({"grades": [1, 1]}, "grades must be the lowest and the highest label"),
        ({"grades": [0]}, "grades must be the lowest and the highest label"),
        ({"grades": [0, 1, 2]}, "grades must be a list of at most 2"),
        ({"token_type_ids": True}, "token_type_ids need a model with token types"),
        ({"token_type_ids": True, "type_vocab_size": 2, "architecture": "bi_encoder"}, "a bi_encoder reads one text"),
        ({"pooling": "max"}, "pooling must be one of first, mean"),
    ],
    ids=str,
)
def test_configuration_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MatchingConfig(**{**SIZES, **options})
