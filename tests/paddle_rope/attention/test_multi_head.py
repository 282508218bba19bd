"""Multi-head attention: where the heads are, what goes to the kernel, and what goes on from a cache."""

from functools import partial

import numpy as np
import paddle
import pytest

from paddle_rope import MultiHeadAttention, RotaryPositionEmbedding, alibi_bias, alibi_slopes, reference
from paddle_rope.attention.linear import LinearAttentionState
from paddle_rope.attention.window import KeyValueState
from tests.helpers.comparison import assert_close, assert_same, cast, random_tensor, randomize
from tests.helpers.pairwise import pairwise

KINDS = {
    "softmax": reference.softmax_attention,
    "linear": reference.linear_attention,
    "window": partial(reference.softmax_attention, window=2),
}
ROTARY = RotaryPositionEmbedding(6)


def random_layer(kind, hidden_size=12, num_heads=2, **options):
    layer = randomize(MultiHeadAttention(hidden_size, num_heads, kind, **{"window": 2, **options}), scale=0.5)
    layer.eval()
    return layer


def random_hidden(batch=2, seq=9, hidden_size=12, dtype="float32"):
    return random_tensor(batch, seq, hidden_size, dtype=dtype)


@pytest.mark.equation("2.6")
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("num_heads", [1, 3])
def test_outputs_and_gradients_equal_one_reference_for_each_head(kind, num_heads):
    head_dim, mask = 4, np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
    layer = random_layer(kind, num_heads * head_dim, num_heads)
    exact = random_hidden(2, 5, num_heads * head_dim, "float64")
    (hidden,) = cast([exact], "float32")
    output = layer(hidden, RotaryPositionEmbedding(head_dim).cos_sin(5), paddle.to_tensor(mask))

    def projected(project, x):
        return paddle.matmul(x, project.weight.astype("float64")) + project.bias.astype("float64")

    heads = []
    for head in range(num_heads):
        columns = slice(head * head_dim, (head + 1) * head_dim)
        q, k, v = (
            projected(project, exact)[:, :, columns].unsqueeze(2) for project in (layer.query, layer.key, layer.value)
        )
        heads.append(KINDS[kind](q, k, v, range(5), mask).squeeze(2))
    expected = projected(layer.output, paddle.concat(heads, axis=-1))
    assert len(layer.parameters()) == 8
    assert_same(output, expected, [hidden, *layer.parameters()], [exact, *layer.parameters()], 5e-5)


def test_dropout_acts_on_softmax_weights_in_training_alone():
    layer, hidden = random_layer("softmax", dropout=0.5), random_hidden()
    np.testing.assert_array_equal(layer(hidden).numpy(), layer(hidden).numpy())
    layer.train()
    assert float((layer(hidden) - layer(hidden)).abs().max()) > 0


@pytest.mark.parametrize("arguments", [(10, 3), (8, 2, "Softmax"), (8, 2, None)], ids=str)
def test_sizes_and_kinds_that_do_not_exist_are_an_error(arguments):
    with pytest.raises(ValueError, match="multiple|attention must be"):
        MultiHeadAttention(*arguments)
    with pytest.raises(ValueError, match="letters qkvo"):
        MultiHeadAttention(8, 2, placement="kq")
    with pytest.raises(ValueError, match="causal"):
        random_layer("linear").forward_with_cache(random_hidden())


@pytest.mark.equation("4.6")
@pytest.mark.parametrize("kind", ["softmax", "linear"])
@pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
@pytest.mark.parametrize("placement, share_kv", [("qkvo", True), ("qkvo", False), ("qkv", True)])
def test_shared_keys_and_values_stay_relative_with_qkvo_and_not_without_o(kind, causal, placement, share_kv):
    layer = random_layer(kind, placement=placement, share_kv=share_kv, causal=causal)
    hidden = random_hidden()
    here, there = (layer(hidden, ROTARY.cos_sin(9, offset)).numpy() for offset in (0, 23))
    change = np.abs(here - there).max() / np.abs(here).max()
    assert change < 2e-5 if placement == "qkvo" else change > 1e-2
    state = layer.state_dict()
    assert ("value.weight" in state) != share_kv
    if share_kv:  # the keys are the values
        twice = random_layer(kind, placement=placement, causal=causal)
        twice.set_state_dict({**state, "value.weight": state["key.weight"], "value.bias": state["key.bias"]})
        assert_close(twice(hidden, ROTARY.cos_sin(9)), here, 1e-5)


# from a cache


def in_pieces(layer, hidden, pieces, key_mask=None):
    """Outputs piece by piece, and the last cache."""
    cache, outputs, start = None, [], 0
    for length in pieces:
        end = start + length
        mask = None if key_mask is None else key_mask[:, :end]
        output, cache = layer.forward_with_cache(hidden[:, start:end], cache, ROTARY.cos_sin(length, start), mask)
        outputs.append(output)
        start = end
    return paddle.concat(outputs, axis=1), cache


@pytest.mark.equation("2.12", "4.7")
@pairwise(
    {
        "kind": ["softmax", "linear", "window"],
        "placement": ["qk", "vo", "qkvo", "qkv", "o"],
        "pieces": [[9], [1] * 9, [4, 1, 1, 3], [1, 8]],
        "share_kv": [False, True],
        "convolutions": [False, True],
        "padded": [False, True],
    }
)
def test_pieces_give_the_whole(kind, placement, pieces, share_kv, convolutions, padded):
    options = {"placement": placement, "share_kv": share_kv, "convolutions": convolutions, "window": 3}
    layer, hidden = random_layer(kind, causal=True, output_gate=True, **options), random_hidden()
    mask = np.arange(9) >= np.array([[3 * padded], [0]])
    key_mask = paddle.to_tensor(mask) if padded else None
    whole = layer(hidden, ROTARY.cos_sin(9), key_mask)
    outputs, cache = in_pieces(layer, hidden, pieces, key_mask)
    assert_close(outputs.numpy()[mask], whole.numpy()[mask], 1e-4)
    for row in (0, 1):  # padding on the left enters no cache
        first = 3 * padded * (1 - row)
        alone = layer(hidden[row : row + 1, first:], ROTARY.cos_sin(9 - first))[0]
        if placement in ("qk", "qkvo"):  # which know relative positions only
            assert_close(outputs[row, first:], alone, 1e-4)
    assert isinstance(cache.state, LinearAttentionState if kind == "linear" else KeyValueState)
    if kind == "window":
        assert cache.state.keys.shape == [2, 3, 2, 6]
    if convolutions:
        assert cache.of_values.shape == cache.of_output.shape == [2, 2, 12]


@pytest.mark.equation("4.6")
@pytest.mark.parametrize(
    "options, one_tensor",
    [
        ({"placement": "qkvo"}, True),
        ({"placement": "qo"}, True),
        ({"placement": "qk"}, False),
        ({"placement": "vo"}, False),
        ({"placement": "qkvo", "convolutions": True}, False),
    ],
    ids=str,
)
def test_the_cache_of_shared_keys_and_values_is_one_tensor_where_both_turn_or_none(options, one_tensor):
    layer = random_layer("softmax", causal=True, share_kv=True, **options)
    _, cache = in_pieces(layer, random_hidden(), [4, 5])
    assert cache.state.keys.shape == [2, 9, 2, 6]
    assert (cache.state.values is None) == one_tensor


@pytest.mark.equation("4.7")
@pytest.mark.parametrize("kind", ["softmax", "window", "linear"])
def test_caches_are_not_changed_so_that_texts_can_branch(kind):
    layer, hidden = random_layer(kind, causal=True, convolutions=True), random_hidden(batch=1)
    _, cache = layer.forward_with_cache(hidden[:, :4], None, ROTARY.cos_sin(4))
    tensors = [x for x in paddle.utils.flatten(cache) if isinstance(x, paddle.Tensor)]
    before = [x.numpy().copy() for x in tensors]
    branches = [
        layer.forward_with_cache(hidden[:, i : i + 1], cache, ROTARY.cos_sin(1, 4))[0].numpy() for i in (4, 5, 4)
    ]
    np.testing.assert_array_equal(branches[0], branches[2])
    for old, new in zip(before, tensors):
        np.testing.assert_array_equal(old, new.numpy())


def test_alibi_goes_on_from_a_cache():
    layer, hidden, slopes = random_layer("softmax", causal=True), random_hidden(), alibi_slopes(2)
    positions = paddle.arange(9).unsqueeze(0)
    whole = layer(hidden, score_bias=alibi_bias(slopes, positions, positions))
    at_start = alibi_bias(slopes, positions[:, :6], positions[:, :6])
    first, cache = layer.forward_with_cache(hidden[:, :6], score_bias=at_start)
    rest = alibi_bias(slopes, positions[:, 6:], positions)
    second, _ = layer.forward_with_cache(hidden[:, 6:], cache, score_bias=rest)
    assert_close(paddle.concat([first, second], axis=1), whole, 1e-5)
