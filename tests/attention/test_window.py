"""Window attention against its reference, in blocks and for short texts, and scores scaled by log of the length."""

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, reference, window_attention
from paddle_rope.attention import window as window_module
from tests.attention.qkv import ragged_mask, random_qkv

# batch, heads, seq, head_dim, value_dim; window. With blocks of 4 the second and third take blocks, with and without
# a rest.
CASES = [((1, 1, 1, 2, 1), 1), ((2, 2, 16, 2, 3), 2), ((3, 1, 19, 4, 2), 3), ((2, 1, 7, 4, 3), 5), ((2, 1, 6, 2, 2), 9)]
OPTIONS = [
    {},
    {"causal": True},
    {"placement": "qkvo", "score_scaling_length": 5},
    {"packed": True},
    {"packed": True, "causal": True, "score_scaling_length": 30},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(window_module, "_SMALLEST_BLOCK", 4)


def segments(batch, seq):
    return np.sort(np.random.randint(0, 3, (batch, seq)), axis=1)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "mask"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape, window", CASES, ids=str)
def test_outputs_and_gradients_equal_the_reference(shape, window, options, masked, dtype, tolerance):
    batch, _, seq, head_dim, value_dim = shape
    options = dict(options)
    if options.pop("packed", False):
        options["segment_ids"] = segments(batch, seq)
    if "v" in options.get("placement", ""):
        shape = (*shape[:-1], head_dim)
    exact = random_qkv(*shape)
    inputs = [x.detach().astype(dtype) for x in exact]
    for x in inputs:
        x.stop_gradient = False
    mask = ragged_mask(batch, seq) if masked else None
    arrays = {"key_mask": mask, "segment_ids": options.pop("segment_ids", None)}
    tensors = {name: None if array is None else paddle.to_tensor(array) for name, array in arrays.items()}
    attended = window_attention(*inputs, window, RotaryPositionEmbedding(head_dim), **tensors, **options)
    expected = reference.softmax_attention(*exact, range(seq), window=window, **arrays, **options)
    assert attended.dtype == inputs[0].dtype
    np.testing.assert_allclose(attended.numpy(), expected.numpy(), rtol=0, atol=tolerance)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((attended * towards.astype(dtype)).sum(), inputs)
    expected_gradients = paddle.grad((expected * towards).sum(), exact)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=tolerance, err_msg=name)
