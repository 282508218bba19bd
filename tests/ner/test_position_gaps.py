"""Positions of training texts drawn with gaps: in encoder and span head, in training alone."""

import numpy as np
import paddle
import pytest

from paddle_rope.positions import positions_with_gaps
from tasks.ner.masked_lm import NerMaskedLM
from tasks.ner.model import NerConfig, NerModel

SIZES = {
    "types": ["a", "b"],
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "head_size": 8,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture
def batch():
    paddle.seed(0)
    ids = paddle.randint(5, 30, [3, 12])
    mask = paddle.arange(12).unsqueeze(0) < paddle.to_tensor([[12], [7], [10]])
    return {"input_ids": ids, "attention_mask": mask, "token_mask": mask}


def pair(**options):
    """Models with and without gaps, with the same weights."""
    plain, with_gaps = (NerModel(NerConfig(position_gaps=gaps, **options, **SIZES)) for gaps in (None, 64))
    with_gaps.set_state_dict(plain.state_dict())
    return plain, with_gaps


@pytest.mark.parametrize(
    "options", [{}, {"attention": "linear"}, {"span_head": "dense", "max_span_length": 4}], ids=str
)
def test_encoder_and_span_head_rotate_at_the_drawn_positions(batch, options):
    plain, with_gaps = pair(**options)
    np.random.seed(4)
    logits = with_gaps(**batch)
    np.random.seed(4)
    positions = positions_with_gaps(batch["attention_mask"], 64)
    hidden = plain.roformer(batch["input_ids"], batch["attention_mask"], positions=positions)
    assert np.allclose(logits, plain.head(hidden, batch["token_mask"], positions), atol=1e-6)
    assert not np.allclose(logits, plain(**batch), atol=1e-3)
    assert not np.allclose(logits, plain.head(hidden, batch["token_mask"]), atol=1e-3)
    assert not np.allclose(logits, with_gaps(**batch), atol=1e-3)  # drawn anew


def test_positions_of_prediction_have_no_gaps(batch):
    plain, with_gaps = pair()
    with_gaps.eval()
    assert np.array_equal(with_gaps(**batch), plain(**batch))


def test_an_offset_of_all_positions_changes_nothing(batch):
    plain, _ = pair()
    offset = paddle.arange(12) + 1000
    hidden = plain.roformer(batch["input_ids"], batch["attention_mask"], positions=offset)
    assert np.allclose(plain.head(hidden, batch["token_mask"], offset), plain(**batch), atol=1e-4)


def test_masked_language_modeling_before_training_draws_positions_too(batch):
    model = pair()[1]
    labels = paddle.where(batch["attention_mask"], batch["input_ids"], paddle.full_like(batch["input_ids"], -100))
    learner = NerMaskedLM(model)
    losses = [float(learner(**batch, labels=labels)[0]) for _ in range(2)]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("wrong", [0, -3, 1.5])
def test_gaps_that_are_no_number_of_positions_are_an_error(wrong):
    with pytest.raises(ValueError, match="position_gaps must be a positive integer or None"):
        NerConfig(position_gaps=wrong, **SIZES)
