"""The contract of all attention kernels: reference, gradients, padding, packing, causality, positions, memory."""

import itertools
import warnings

import numpy as np
import paddle
import pytest

from paddle_rope import RotaryPositionEmbedding, YaRNScaling
from paddle_rope.attention import softmax
from paddle_rope.options import PLACEMENTS
from tests.helpers.comparison import assert_close, assert_same, cast, is_native
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.attention.kernels import FORMS, KERNELS, ragged_mask, random_qkv, rope_of, turn_of

PACKING = [name for name, kernel in KERNELS.items() if kernel.packs]
SOFTMAX = ["softmax", "causal softmax", "window", "causal window"]
packing = pytest.mark.parametrize("name", PACKING)
# batch, seq, heads, head_dim, value_dim; the last is of several chunks
SHAPES = (1, 1, 2, 2, 1), (3, 17, 2, 6, 6), (2, 300, 2, 4, 4)
# every placement with a kernel of softmax and a linear one, and two with each other kernel
ROTATING = ("softmax", "linear, decay")
PLACED = [(name, one) for number, name in enumerate(KERNELS)
          for one in (PLACEMENTS if name in ROTATING else ("qkvo", PLACEMENTS[number % len(PLACEMENTS)]))]  # fmt: skip
IS_PADDLE_2 = paddle.__version__.startswith("2.")
pytestmark = pytest.mark.usefixtures("native_operators")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(softmax, "_SMALLEST_BLOCK", 4)


@pytest.mark.equation("1.1", "2.1", "2.4", "2.7", "2.8", "2.9", "3.1", "3.3", "3.5", "3.6", "3.8", "3.15", "3.17")
@pytest.mark.equation("3.20", "3.21", "3.23", "3.24", "3.25", "3.27", "3.28", "3.29", "3.30", "3.32", "3.33")
@pytest.mark.equation("4.2", "4.8")
@pairwise({
    "name": list(KERNELS),
    "form": ["float64", "native"],
    "shape, packed": [(SHAPES[0], False), *itertools.product(SHAPES[1:], [False, True])],
    "positions": [None, "counted", "of each text", "one row of all"],
    "options": [{}, {"layout": "half"}, {"scaling": YaRNScaling(4.0, 32)}],
    "masked": [False, True],
})  # fmt: skip
def test_outputs_and_gradients_equal_the_reference(
    name, form, shape, packed, positions, options, masked, native_operators
):
    exact, kernel, (batch, seq, _, head_dim, value_dim) = random_qkv(*shape), KERNELS[name], shape
    inputs, masks, rope, turn = cast(exact, FORMS[form].dtype), {}, None, None
    if kernel.options.get("normalizer") == "rotated":  # whose denominators YaRN may turn negative
        options = {"layout": options.get("layout", "interleaved")}
    if masked:
        masks["key_mask"] = ragged_mask(batch, seq)
    if packed and kernel.packs:
        masks["segment_ids"] = np.sort(np.random.randint(-1, 5, (batch, seq)), axis=1)[:, ::-1].copy()
    if positions is not None:  # no angle is beyond 90 degrees: rotated denominators are positive as well
        places = np.linspace(0, 1.5, seq)
        if positions != "counted":
            places = places / np.arange(1, 1 + (batch if positions == "of each text" else 1))[:, np.newaxis]
        rope = rope_of(inputs[0], positions=paddle.to_tensor(places), **options)
        rotary = RotaryPositionEmbedding(head_dim, **options)
        turn = turn_of(places, theta=rotary.theta, layout=rotary.layout, amplitude=rotary.amplitude)
    with FORMS[form].context():
        attended = kernel(*inputs, rope, **{key: paddle.to_tensor(mask) for key, mask in masks.items()})
    fits = native_operators and form == "native" and kernel.native and head_dim == value_dim
    fits = fits and not (packed and kernel.linear)
    assert attended.dtype == inputs[0].dtype and is_native(attended) == fits
    tolerance = FORMS[form].tolerance * (20 if "norm" in name else 1)  # a sum that cancels is far from its size
    assert_same(attended, kernel.reference(*exact, turn, **masks), inputs, exact, tolerance)


@pytest.mark.equation("3.36")
@packing  # the pieces of the others are joined, and on CPU Paddle has no gradient of that in bfloat16
@pytest.mark.parametrize("dtype, unit", [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_half_precision_loses_no_more_than_its_rounding(name, dtype, unit):
    inputs = cast(random_qkv(2, 70), dtype)  # the inputs are numbers of the half precision
    exact = cast(inputs, "float64")
    attended = KERNELS[name](*inputs, rope_of(inputs[0]))
    assert attended.dtype == inputs[0].dtype
    expected = KERNELS[name](*exact, rope_of(exact[0]))
    assert_same(attended, expected, inputs, exact, 1e-2 if "norm" in name else 2e-3, 2 * unit)


@pytest.mark.equation("2.3", "2.10", "3.9", "3.38")
@pairwise({"name": list(KERNELS), "rotated": [False, True], "packed": [False, True]})
def test_padding_has_no_influence_and_a_text_or_segment_of_it_alone_is_zero(name, rotated, packed):
    q, k, v = random_qkv(4, 9, dtype="float32")
    mask, rope = ragged_mask(4, 9), rope_of(q) if rotated else None
    mask[2], options = False, {}
    if packed and KERNELS[name].packs:
        mask[3, :4], options["segment_ids"] = False, paddle.to_tensor([[0] * 4 + [1] * 5] * 4)
    options["key_mask"] = paddle.to_tensor(mask)
    padding = paddle.to_tensor(~mask[:, :, np.newaxis, np.newaxis]).astype("float32")
    for form in ("float32", "native"):
        with FORMS[form].context():
            attended = KERNELS[name](q, k, v, rope, **options)
            other = KERNELS[name](q, k + 30 * padding, v - 500 * padding, rope, **options)
        gradients = [x.numpy() for x in paddle.grad((attended * attended).sum(), [q, k, v])]
        for x in (attended.numpy(), *gradients):
            assert (x[2] == 0).all() and ("segment_ids" not in options or (x[3, :4] == 0).all())
        assert (attended.numpy()[mask] != 0).all()
        for gradient in gradients[1:]:
            assert (gradient[~mask] == 0).all()
            if "norm" not in name:  # the sum of squares of normalized outputs has no gradient
                assert (gradient[mask] != 0).any()
        np.testing.assert_array_equal(other.numpy(), attended.numpy())


@pytest.mark.equation("1.4", "2.2", "2.7", "3.4", "4.3", "4.4", "4.5", "4.6")
@pytest.mark.parametrize("name, placement", PLACED)
def test_every_placement_equals_the_reference_and_is_relative_or_not_as_it_says(name, placement):
    kernel, qkv = KERNELS[name], random_qkv(2, 7, head_dim=6, value_dim=6)
    attended = kernel(*qkv, rope_of(qkv[0]), placement=placement)
    expected = kernel.reference(*qkv, turn_of(range(7)), placement=placement)
    assert_same(attended, expected, qkv, atol=1e-7 if "norm" in name else 1e-9)
    in_float32 = kernel(*cast(qkv, "float32"), rope_of(qkv[0].astype("float32")), placement=placement)
    assert_close(in_float32, expected, 4e-3 if "norm" in name else 2e-4)  # where there is a native form, it is for qk
    shifted = kernel(*qkv, rope_of(qkv[0], offset=37), placement=placement)
    change = float((shifted - attended).abs().max() / attended.abs().max())
    scores_see_distance, turns_back = ("q" in placement) == ("k" in placement), ("v" in placement) == ("o" in placement)
    assert change < 1e-11 if scores_see_distance and turns_back else change > 1e-3
    if scores_see_distance and not turns_back:  # it turns as a whole
        by = paddle.full([7], 37 if "v" in placement else -37)
        assert_close(shifted, RotaryPositionEmbedding(6)(attended, positions=by), 1e-11)


@pytest.mark.equation("2.7")
@pytest.mark.parametrize("name", SOFTMAX)
@pytest.mark.parametrize("seq", [7, 37])  # of one block of a window, and of several
def test_fewer_queries_than_keys_are_the_last_ones(name, seq):
    q, k, v = random_qkv(2, seq)
    ids = paddle.to_tensor(np.sort(np.random.randint(0, 4, (2, seq)), axis=1))
    for options in ({}, {"segment_ids": ids}):
        whole = KERNELS[name](q, k, v, **options)
        for queries in (1, 2, seq - 1):
            assert_close(KERNELS[name](q[:, -queries:], k, v, **options), whole[:, -queries:], 1e-12)


@pytest.mark.slow
@pytest.mark.equation("2.11", "3.2", "3.26", "3.29", "3.33")
@pytest.mark.parametrize("name", [name for name in PACKING if KERNELS[name].linear])
def test_no_square_of_the_length_is_ever_held(name):
    seq = 60_000  # weights [seq, seq] of this length would be 14 GB
    qkv = random_qkv(1, seq, 2, 2, 2, dtype="float32")
    for more in ({}, {"segment_ids": paddle.arange(seq).unsqueeze(0) // 7}):
        attended = KERNELS[name](*qkv, rope_of(qkv[0]), **more)
        gradients = paddle.grad(attended.sum(), qkv)
        assert attended.shape == [1, seq, 2, 2]
        assert all(bool(paddle.isfinite(x).all()) for x in (attended, *gradients))


@packing
@pytest.mark.skipif(IS_PADDLE_2, reason="Paddle 2 multiplies no empty matrices")
def test_an_empty_batch_keeps_its_length(name):
    qkv = random_qkv(0, 5, dtype="float32")
    for options in ({}, {"segment_ids": paddle.zeros([0, 5], dtype="int64")}):
        assert KERNELS[name](*qkv, rope_of(qkv[0]), **options).shape == [0, 5, 2, 4]


@pytest.mark.equation("2.4")
@packing
@pytest.mark.parametrize("gaps", [[[1, 2, 1, 1, 2]], [[1] * 60 + [2] * 60 + [1]]], ids=["short", "long"])
def test_segments_with_gaps_are_right_in_softmax_and_an_error_in_linear_attention(name, gaps):
    qkv = random_qkv(1, len(gaps[0]))
    if name in SOFTMAX:
        expected = KERNELS[name].reference(*qkv, segment_ids=gaps)
        assert_close(KERNELS[name](*qkv, segment_ids=paddle.to_tensor(gaps)), expected)
    else:
        with pytest.raises(ValueError, match="side by side"):
            KERNELS[name](*qkv, segment_ids=paddle.to_tensor(gaps))


@pytest.mark.parametrize("name", ["softmax", "window", "linear"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_masks_of_0_and_1_are_read_and_other_layouts_are_told(name, dtype):
    qkv, mask = random_qkv(3, 9, dtype=dtype), paddle.to_tensor(ragged_mask(3, 9))
    expected = KERNELS[name](*qkv, key_mask=mask)
    for given in ("int64", "int32", "uint8"):
        assert_close(KERNELS[name](*qkv, key_mask=mask.astype(given)), expected, 1e-6)
    if "window" not in name:  # windows are for long texts
        heads_first = [x.transpose([0, 2, 1, 3]) for x in qkv]
        with pytest.warns(UserWarning, match=r"q \[3, 2, 9, 4\] has fewer tokens, 2, than heads, 9; if it is"):
            KERNELS[name](*heads_first)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KERNELS[name](*heads_first, None, paddle.ones([3, 2], dtype="bool"))  # a text of two tokens
