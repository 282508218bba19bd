"""Sequences and batches, the model's outputs, losses and configuration."""

import math

import numpy as np
import paddle
import pytest

from paddle_rope.roformer import CharTokenizer
from paddle_rope.tasks.common.inference import Tokens, pad_texts
from paddle_rope.tasks.matching.data import Example
from paddle_rope.tasks.matching.model import MatchingConfig, MatchingModel, cosent_loss, grade_loss, ranking_loss
from paddle_rope.tasks.matching.prediction import MatchingDataset
from tests.paddle_rope.roformer.small_models import randomise

SIZES = {
    "vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
GRADES = {"pairs": [0, 1], "grades": [0.0, 5.0], "triples": None}
TOKENIZER = CharTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[SPACE]", *"abcdefghijklmnopqrstuvwxyz"])
BI = {"architecture": "bi_encoder"}


def dataset(tuples, max_tokens=None, **options):
    examples = [Example(texts, 1.0, "") for texts in tuples]
    return MatchingDataset(examples, TOKENIZER, MatchingConfig(**{**SIZES, **options}), max_tokens)


def shown(ids):
    """Tokens, special ones as their initials."""
    return "".join(TOKENIZER.vocab[index].strip("[]")[0] for index in ids)


@pytest.mark.parametrize("texts, options, expected, num_cut", [
    (("ab", "xyz"), {}, ["CabSxyzS"], 0),
    (("abcdefgh", "rstuvwxy"), {}, ["CabcdSrstS"], 1),  # each has half; the odd token is the first text's
    (("abcdefgh", "rs"), {}, ["CabcdeSrsS"], 1),  # what a short one leaves is the other's
    (("a", "rstuvwxy"), {}, ["CaSrstuvwS"], 1),
    (("abcdefghij", "rs"), BI, ["CabcdefghS", "CrsS"], 1),  # each text has the whole length
    (("ab", "c", "ab"), BI, ["CabS", "CcS"], 0),  # sequences in common are kept once
], ids=str)  # fmt: skip
def test_texts_become_sequences(texts, options, expected, num_cut):
    data = dataset([texts], max_tokens=10, **options)
    assert [shown(sequence.ids) for sequence in data.sequences] == expected
    assert data.num_cut == num_cut and data.lengths == [max(map(len, expected))]


def test_batches_have_the_first_sequences_of_all_items_first_and_are_padded():
    data = dataset([("a", "bcd"), ("ef", "g")], **BI)
    batch = data.collate([data[0], data[1]])
    rows = list(map(shown, batch["input_ids"]))
    assert rows == ["CaSPP", "CefSP", "CbcdS", "CgSPP"] and "token_type_ids" not in batch
    assert batch["attention_mask"].tolist() == [[token != "P" for token in row] for row in rows]
    assert batch["labels"].dtype == np.float32 and batch["labels"].tolist() == [1, 1]
    data = dataset([("ab", "xyz")], token_type_ids=True, type_vocab_size=2)
    assert data.collate([data[0]])["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]


def tensors(rows):
    return {name: paddle.to_tensor(array) for name, array in pad_texts(rows, 0).items()}


@pytest.mark.parametrize("task", GRADES)
@pytest.mark.parametrize("architecture", ["cross_encoder", "bi_encoder"])
def test_loss_is_that_of_the_scores_of_each_example_alone_and_reaches_every_weight(architecture, task):
    batch, parts = 4, {"cross_encoder": 1, "bi_encoder": 2}[architecture] + (task == "triples")
    ids = [np.random.randint(5, 30, size) for size in np.random.randint(3, 9, parts * batch)]
    rows, options = list(map(Tokens, ids)), {"architecture": architecture, "task": task, "scale": 7.0}
    if architecture == "cross_encoder":
        rows = [Tokens(one, np.random.randint(0, 2, len(one))) for one in ids]
        options |= {"grades": GRADES[task], "token_type_ids": True, "type_vocab_size": 2}
    model = randomise(MatchingModel(MatchingConfig(**SIZES, **options)), 0.3)
    labels = paddle.to_tensor([4.0, 0.0, 2.5, 5.0] if task == "grades" else [1.0, 0.0, 0.0, 1.0])
    loss, scores = model(**tensors(rows), labels=labels)
    alone = [model(**tensors([row]))[0] for row in rows]  # without padding
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


def slow_cosent(cosines, labels, scale):
    pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]
    return math.log(1 + sum(math.exp(scale * (cosines[j] - cosines[i])) for i, j in pairs))


def slow_ranking(first, second, first_is_closer):
    pairs = [(a, b) if closer else (b, a) for a, b, closer in zip(first, second, first_is_closer)]
    return sum(math.log(1 + math.exp(farther - closer)) for closer, farther in pairs) / len(pairs)


def slow_grade(logits, shares):
    probabilities = [1 / (1 + math.exp(-logit)) for logit in logits]
    return -sum(y * math.log(p) + (1 - y) * math.log(1 - p) for p, y in zip(probabilities, shares)) / len(shares)


SECOND = [0.4, -2.0, 1.5, 0.1, -0.6, 3.0]


@pytest.mark.parametrize("loss, slow, arguments", [
    *((cosent_loss, slow_cosent, (labels, scale)) for scale in (20.0, 3.0)
      for labels in ([1, 0, 1, 0, 0, 1], [5, 0, 3, 3, 1.5, 2], [0, 0, 0, 1, 0, 0])),
    (ranking_loss, slow_ranking, (SECOND, [1, 0, 0, 1, 1, 0])),
    (lambda x, a, y: ranking_loss(a, x, y), lambda x, a, y: slow_ranking(a, x, y), (SECOND, [0, 1, 1, 0, 0, 1])),
    (grade_loss, slow_grade, ([0.2, 0.75, 1, 0, 0.5, 0.1],)),
])  # fmt: skip
def test_loss_and_gradient_are_those_of_the_definition(loss, slow, arguments):
    scores = np.random.uniform(-1, 1, 6)
    tensor = paddle.to_tensor(scores, dtype="float64", stop_gradient=False)
    given = [paddle.to_tensor(np.array(one)) if isinstance(one, list) else one for one in arguments]
    value = loss(tensor, *given)
    value.backward()
    assert value.dtype == paddle.float64 and value.item() == pytest.approx(slow(scores, *arguments), rel=1e-12)
    moves = 1e-6 * np.eye(6)
    differences = [(slow(scores + move, *arguments) - slow(scores - move, *arguments)) / 2e-6 for move in moves]
    np.testing.assert_allclose(tensor.grad.numpy(), differences, atol=1e-6)
    assert np.abs(tensor.grad.numpy()).max() > 1e-2


def test_losses_of_extreme_scores_are_finite_and_small_terms_are_not_lost():
    labels, wrong = paddle.to_tensor([1.0, 0.0]), paddle.to_tensor([-1.0, 1.0])
    assert float(cosent_loss(wrong, paddle.ones([2]))) == 0  # no order
    assert float(cosent_loss(wrong, labels, scale=1e4)) == pytest.approx(2e4)
    assert float(cosent_loss(-wrong.astype("float64"), labels, scale=10.0)) == pytest.approx(math.exp(-20), rel=1e-6)
    half = cosent_loss(wrong.astype("float16"), labels)
    assert half.dtype == paddle.float32 and float(half) == pytest.approx(40)
    assert float(ranking_loss(1e4 * wrong, -1e4 * wrong, labels)) == pytest.approx(2e4)
    assert float(grade_loss(1e4 * wrong, labels)) == pytest.approx(1e4)
