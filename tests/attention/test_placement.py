"""RoPE on any of query, key, value and output: kernels against references, and which placements are relative."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import (
    MultiHeadAttention,
    RotaryPositionEmbedding,
    causal_linear_attention,
    linear_attention,
    reference,
    softmax_attention,
)
from paddle_rope.attention import depends_on_relative_position_only
from paddle_rope.options import PLACEMENTS

# As kexue.fm 10862 compares them, with what a shift of all positions does to the output.
RELATIVE = {"qk": True, "vo": True, "qkvo": True, "k": False, "qkv": False, "q": False, "v": False, "o": False}
KERNELS = {
    "softmax": (softmax_attention, reference.softmax_attention, {}),
    "causal softmax": (softmax_attention, reference.softmax_attention, {"causal": True}),
    "linear": (linear_attention, reference.linear_attention, {}),
    "causal linear": (causal_linear_attention, partial(reference.linear_attention, causal=True), {}),
}
each_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
# Relative placements with each kernel; the others with one, so that each kernel has q or k, both and none rotated, and
# v or o, both and none.
each_placement = pytest.mark.parametrize(
    "kernel, placement",
    [
        (kernel, placement)
        for number, placement in enumerate(PLACEMENTS)
        for at, kernel in enumerate(sorted(KERNELS))
        if depends_on_relative_position_only(placement) or (number + number // 4 - at) % len(KERNELS) == 0
    ],
)


def random_tensor(*shape, dtype="float64"):
    return paddle.to_tensor(np.random.standard_normal(shape), dtype=dtype, stop_gradient=False)


@each_placement
def test_outputs_and_gradients_equal_the_reference(kernel, placement):
    attend, plain, options = KERNELS[kernel]
    batch, heads, seq, head_dim = 2, 2, 5, 6
    q, k, v = qkv = [random_tensor(batch, heads, seq, head_dim) for _ in range(3)]
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
    output = attend(q, k, v, RotaryPositionEmbedding(head_dim), paddle.to_tensor(mask), placement=placement, **options)
    expected = plain(*qkv, range(seq), mask, placement=placement, **options)
    np.testing.assert_allclose(output.numpy(), expected.numpy(), rtol=0, atol=1e-10)
    towards = paddle.to_tensor(np.random.standard_normal(expected.shape))
    gradients = paddle.grad((output * towards).sum(), qkv)
    expected_gradients = paddle.grad((expected * towards).sum(), qkv)
    for name, gradient, expected_gradient in zip("qkv", gradients, expected_gradients):
        np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=0, atol=1e-9, err_msg=name)


def change_by_shift(kernel, placement, normalizer=None):
    """Largest change of the output, relative to its largest value, when all positions grow by 37."""
    attend, _, options = KERNELS[kernel]
    if normalizer is not None:
        options = {**options, "normalizer": normalizer}
    rotary = RotaryPositionEmbedding(8)
    qkv = [random_tensor(2, 3, 11, 8) for _ in range(3)]
    here, there = (
        attend(*qkv, partial(rotary, offset=offset), placement=placement, **options).numpy() for offset in (0, 37)
    )
    return np.abs(here - there).max() / np.abs(here).max()


@each_placement
def test_a_shift_of_all_positions_tells_relative_placements_from_others(kernel, placement):
    change = change_by_shift(kernel, placement)
    if depends_on_relative_position_only(placement):
        assert change < 1e-12
    else:
        assert change > 1e-2


@pytest.mark.parametrize("kernel", ["linear", "causal linear"])
@pytest.mark.parametrize("placement", ["qk", "vo", "qkvo"])
def test_relative_placements_stay_relative_without_denominator(kernel, placement):
    assert change_by_shift(kernel, placement, normalizer="none") < 1e-12


def test_the_placements_of_the_post_are_classed_as_it_says():
    assert {placement: depends_on_relative_position_only(placement) for placement in RELATIVE} == RELATIVE
    assert len(PLACEMENTS) == len(set(PLACEMENTS)) == 15
    assert sum(depends_on_relative_position_only(placement) for placement in PLACEMENTS) == 3


@each_kernel
@pytest.mark.parametrize("placement, direction", [("qkv", 1), ("qko", -1), ("v", 1), ("o", -1)])
def test_with_one_of_v_and_o_a_shift_turns_the_whole_output(kernel, placement, direction):
    attend, _, options = KERNELS[kernel]
    rotary = RotaryPositionEmbedding(8)
    qkv = [random_tensor(2, 3, 11, 8) for _ in range(3)]
    here, there = (attend(*qkv, partial(rotary, offset=offset), placement=placement, **options) for offset in (0, 37))
    turned = rotary(here, positions=paddle.full([11], direction * 37))
    np.testing.assert_allclose(there.numpy(), turned.numpy(), rtol=0, atol=1e-12)


@each_kernel
def test_vo_without_qk_still_tells_the_order_of_tokens(kernel):
    attend, _, options = KERNELS[kernel]
    rotary = RotaryPositionEmbedding(6)
    q, k, v = (random_tensor(1, 1, 7, 6) for _ in range(3))
    order = paddle.to_tensor([0, 3, 2, 1, 4, 5, 6])  # the last token sees the same tokens in another order
    swapped = [paddle.index_select(x, order, axis=2) for x in (q, k, v)]

    def last(qkv, rotate):
        return attend(*qkv, rotate, placement="vo", **options)[0, 0, -1].numpy()

    np.testing.assert_allclose(last((q, k, v), None), last(swapped, None), rtol=0, atol=1e-12)
    assert np.abs(last((q, k, v), rotary) - last(swapped, rotary)).max() > 1e-2


@pytest.mark.parametrize("placement", ["", "none", "kq", "qq", "QK", None, "x"], ids=str)
@each_kernel
def test_unknown_placements_are_an_error(kernel, placement):
    with pytest.raises(ValueError, match="letters qkvo"):
        KERNELS[kernel][0](*(random_tensor(1, 1, 2, 4) for _ in range(3)), placement=placement)
    with pytest.raises(ValueError, match="letters qkvo"):
        MultiHeadAttention(8, 2, placement=placement)


@pytest.mark.parametrize("kind", ["softmax", "linear"])
@pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
@pytest.mark.parametrize("placement, share_kv", [("qkvo", True), ("qkvo", False), ("qkv", True)])
def test_shared_keys_and_values_stay_relative_with_qkvo_and_not_without_o(kind, causal, placement, share_kv):
    layer = MultiHeadAttention(12, 2, kind, placement=placement, share_kv=share_kv, causal=causal)
    layer.eval()
    rotary = RotaryPositionEmbedding(6)
    hidden = paddle.to_tensor(np.random.standard_normal((2, 9, 12)), dtype="float32")
    here, there = (layer(hidden, partial(rotary, offset=offset)).numpy() for offset in (0, 23))
    change = np.abs(here - there).max() / np.abs(here).max()
    assert change < 1e-5 if placement == "qkvo" else change > 1e-2
    assert hasattr(layer, "value") != share_kv


def test_shared_projections_attend_with_the_keys_as_values():
    hidden = paddle.to_tensor(np.random.standard_normal((2, 5, 8)), dtype="float32")
    shared = MultiHeadAttention(8, 2, placement="qkvo", share_kv=True)
    twice = MultiHeadAttention(8, 2, placement="qkvo")
    twice.set_state_dict({**shared.state_dict(), "value.weight": shared.key.weight, "value.bias": shared.key.bias})
    rotary = RotaryPositionEmbedding(4)
    np.testing.assert_allclose(shared(hidden, rotary).numpy(), twice(hidden, rotary).numpy(), rtol=0, atol=1e-6)
