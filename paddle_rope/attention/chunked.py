"""The sums of linear attention, s_i = sum_j gamma^|i - j| (q_i . k_j) v_j, in time linear in the length.

One kernel for whole, causal and packed texts, and for texts that continue: a state goes in, the next one comes out, as
in flash-linear-attention (github.com/fla-org/flash-linear-attention).
"""

from typing import Any

import paddle
from paddle import Tensor

from paddle_rope.attention.arguments import by_head, transposed
from paddle_rope.backend import length_of, padded, remembered, scaled

# A text up to the first length is one chunk; longer ones are cut into chunks of tokens, and more chunks into groups.
_ONE_CHUNK, _CHUNK, _GROUP = 128, 64, 16


def chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor | None = None,
    decay: tuple[float, ...] | Tensor | None = None,
    causal: bool = False,
    segment_ids: Tensor | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""The sums ``[batch, seq, heads, value_dim]`` over all j, with ``causal`` over j <= i, and the final state.

    The weights of a chunk of tokens are computed, ``[size, size]``. The tokens before it contribute through a state,
    those behind it through another one. A state is the sum over chunks of k^T v: a cumulative sum without decay; with
    decay it is this kernel again, whose tokens are the chunks. No exponent of a gamma is negative.

    Args:
        q, k: ``[batch, seq, heads, features]``, k 0 at padding.
        v: ``[batch, seq, heads, value_dim]``; None for one feature that is 1 everywhere.
        decay: gamma in (0, 1] for each head, a trained one as a tensor ``[heads]``; None for 1.
        segment_ids: integer ``[batch, seq]``: j runs over the tokens with i's id, which are side by side.
        initial_state: for ``causal``, the final state of the tokens before these; None at the beginning of a text.
        output_final_state: for ``causal``, return sum_j gamma^(seq - 1 - j) k_j^T v_j, earlier tokens included,
            ``[batch, heads, features, value_dim]``, instead of None.

    >>> x = paddle.to_tensor([1.0, 2.0]).reshape([1, 2, 1, 1])
    >>> chunked(x, x, x, causal=True)[0].flatten().tolist()  # 1 * 1 * 1, 2 * (1 * 1 + 2 * 2)
    [1.0, 10.0]
    """
    if v is None and not causal and decay is None and segment_ids is None:
        products = scaled(q, k.sum(axis=1, keepdim=True))
        return (products if q.shape[-1] == 1 else products.sum(axis=-1, keepdim=True)), None
    q, k, v = by_head(q), by_head(k), None if v is None else by_head(v)
    state = _state_after(k, v, decay, initial_state) if output_final_state else None
    if not causal and decay is None and segment_ids is None:
        sums = paddle.matmul(q, _update(k, v))
    elif state is not None and q.shape[2] == 1:
        sums = paddle.matmul(q, state)
    else:
        ids = None if segment_ids is None else segment_ids.unsqueeze([1, 3])
        sums = _sums(q, k, v, decay, "past" if causal else "both", (ids, ids))
        if initial_state is not None:
            q = _product(q, _powers(decay, range(1, q.shape[2] + 1), q.dtype))
            sums = sums + paddle.matmul(q, initial_state)
    return by_head(sums), state


def _state_after(k, v, decay, state):
    """The state after the last token, from the one before the first; ``[batch, heads, seq, size]``."""
    seq = k.shape[2]
    update = _update(_product(k, _powers(decay, range(seq - 1, -1, -1), k.dtype)) if seq > 1 else k, v)
    return update if state is None else update + _product(state, _powers(decay, (seq,), k.dtype))


def _sums(q, k, v, decay, side, ids=(None, None), step=1):
    """The sums over one ``side`` of each token, ``"past"`` or ``"future"``, or over ``"both"``, heads before tokens.

    With a ``step`` above 1 the tokens are chunks of that many: q and k are None, for 1, v are states, and a chunk does
    not see itself. ``ids`` of queries and keys are ``[batch, 1, seq, 1]``.
    """
    like = v if k is None else k
    seq, length = like.shape[2], length_of(like, 2)  # the first is -1 where a static graph does not know it
    if 0 <= seq <= _ONE_CHUNK or (seq < 0 and step > _CHUNK):
        return _weighted(q, k, v, decay, length, side, ids, step, False)

    size = _CHUNK if step == 1 else _GROUP
    chunks = (length + size - 1) // size

    def split(x):
        """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``, zeros at the end."""
        if x is None:
            return None
        return padded(x, 2, after=chunks * size - length).reshape([-1, x.shape[1], chunks, size, x.shape[3]])

    q, k, v, ids, dtype = split(q), split(k), split(v), [split(x) for x in ids], like.dtype
    sums = _weighted(q, k, v, decay, size, side, ids, step, True)
    # distances from the edge of a chunk: of its tokens, and from the state there, which they see, to them
    index = range(0, step * size, step)
    seen = range(1, 1 + size) if step == 1 else index  # above the first level that state ends at the neighbor
    for one in ("past", "future") if side == "both" else (side,):
        exponents = (index[::-1], seen) if one == "past" else (index, seen[::-1])
        to_state, from_state = (_powers(decay, each, dtype, 2) for each in exponents)
        edges: Any = None, None
        if ids[0] is not None:  # the state that a chunk sees is of the segment at the edge of its neighbor
            edge = ids[1][:, :, :, :1] if one == "future" else ids[1][:, :, :, -1:]
            edges = _of_neighbor(edge, one), edge
            to_state = _product(to_state, (ids[1] == edge).astype(dtype))
            from_state = _product(from_state, (ids[0] == edges[0]).astype(dtype))
            edges = [x.squeeze(3) for x in edges]
        updates = _update(_product(k, to_state), v)
        if decay is None and ids[0] is None:
            states = updates.cumsum(axis=2) - updates
        else:
            flat = updates.reshape([-1, updates.shape[1], chunks, updates.shape[3] * updates.shape[4]])
            flat = _sums(None, None, flat, decay, one, edges, step=step * size)
            states = flat.reshape([-1, flat.shape[1], chunks, *updates.shape[3:]])
        sums = sums + paddle.matmul(_product(q, from_state), states)
    return sums.reshape([-1, sums.shape[1], chunks * size, sums.shape[4]])[:, :, :length]


def _weighted(q, k, v, decay, size, side, ids, step, is_cut):
    """The sums within the chunks ``[batch, heads, chunks, size, features]``, or without the axis of chunks."""
    dtype = (v if k is None else k).dtype
    weights = _within(decay, size, side, step, dtype, is_cut)
    if ids[0] is not None:
        weights = _product(weights, (ids[0] == transposed(ids[1])).astype(dtype))
    if k is not None:
        # for one feature not a matrix product, which oneDNN computes wrongly in graphs of paddle 3.3.1
        products = q * transposed(k) if k.shape[-1] == 1 else paddle.matmul(q, k, transpose_y=True)
        weights = _product(products, weights)
    return weights.sum(axis=-1, keepdim=True) if v is None else paddle.matmul(weights, v)


def _update(k, v):
    """What tokens add to a state, k^T v: ``[..., features, value_dim]``."""
    return k.sum(axis=-2).unsqueeze(-1) if v is None else paddle.matmul(k, v, transpose_x=True)


def _of_neighbor(x, side):
    """What a chunk gets from the one before it, or behind it; ``[batch, heads, chunks, ...]``."""
    parts = [x[:, :, 1:], x[:, :, -1:]] if side == "future" else [x[:, :, :1], x[:, :, :-1]]
    return paddle.concat(parts, axis=2)


def _product(x, factor):
    """The product of two tensors, None for 1."""
    if x is None or factor is None:
        return factor if x is None else x
    return x * factor if x.shape[0] == 1 else scaled(x, factor)


# Weights by distance, the same in every layer and step unless the decay is trained.


@remembered
def _within(decay, size, side, step, dtype, is_cut):
    """gamma^(step |i - j|) on this side: ``[1, heads or 1, size, size]``, is_cut an axis more; None for 1."""
    index = paddle.arange(size).astype(dtype)
    lag, inner = index.unsqueeze(1) - index, int(step > 1)
    seen = {"both": None, "past": lag >= inner, "future": -lag >= inner}[side]
    weights = None if seen is None else seen.astype(dtype).unsqueeze([0, 1])
    if decay is not None:
        weights = _product(_gamma(decay, dtype) ** (paddle.clip(lag.abs() - inner, min=0) * step), weights)
    return weights.unsqueeze(2) if is_cut and weights is not None else weights


@remembered
def _powers(decay, exponents, dtype, *axes):
    """gamma^exponents, ``[1, heads, exponents, 1]`` with further ``axes``; None for 1."""
    if decay is None:
        return None
    return (_gamma(decay, dtype) ** paddle.to_tensor(list(exponents), dtype=dtype).unsqueeze(1)).unsqueeze(list(axes))


def _gamma(decay, dtype):
    """``[1, heads, 1, 1]``."""
    decay = paddle.to_tensor(decay, dtype=dtype) if isinstance(decay, tuple) else decay.astype(dtype)
    return decay.reshape([1, -1, 1, 1])
