"""The sums of linear attention, chunk by chunk: causal, and within packed texts. Time and memory are linear in seq.

Inside a chunk the weights are formed, ``[chunk_size, chunk_size]``. What lies outside it enters through one matrix,
the state sum_j phi_k_j v_j^T, which runs from chunk to chunk.
"""

import paddle
from paddle import Tensor

from paddle_rope.layers import scaled


def check_segments(segment_ids: Tensor, batch: int, seq: int, side_by_side: bool = False) -> None:
    """Raise ValueError unless ``segment_ids`` is integer ``[batch, seq]``, if asked with equal ids side by side.

    In static graphs, where sizes are not known, only the dtype is checked.
    """
    if paddle.in_dynamic_mode() and list(segment_ids.shape) != [batch, seq]:
        raise ValueError(f"segment_ids must be [batch, seq] = {[batch, seq]}, got {list(segment_ids.shape)}")
    if segment_ids.dtype not in (paddle.int32, paddle.int64):
        raise ValueError(f"segment_ids must be int32 or int64, got {segment_ids.dtype}")
    if side_by_side and paddle.in_dynamic_mode():
        for row in segment_ids.numpy():
            if 1 + (row[1:] != row[:-1]).sum() != len(set(row.tolist())):
                raise ValueError("linear attention needs the tokens of a segment side by side; segment_ids has gaps")


def causal_sums(
    phi_q: Tensor,
    phi_k: Tensor,
    v: Tensor,
    decay: Tensor | None = None,
    segment_ids: Tensor | None = None,
    chunk_size: int = 64,
) -> Tensor:
    r"""s_i = sum_{j <= i} gamma^(i - j) (phi_q_i . phi_k_j) v_j. No power of gamma has a negative exponent.

    Args:
        phi_q, phi_k: ``[batch, heads, seq, features]``.
        v: ``[batch, heads, seq, value_dim]``.
        decay: gamma ``[heads]``, in (0, 1]; None for 1.
        segment_ids: integer ``[batch, seq]``, equal ids side by side: j runs over the segment of i only.
        chunk_size: any positive number; memory grows with seq * (chunk_size + features * value_dim / chunk_size).

    Returns:
        ``[batch, heads, seq, value_dim]``.
    """
    _, heads, seq, _ = phi_q.shape
    size = max(1, min(chunk_size, seq))
    phi_q, phi_k, v = (split_chunks(x, size) for x in (phi_q, phi_k, v))
    index = paddle.arange(size)
    lag = index.unsqueeze(1) - index  # i - j, [size, size]
    within = (lag >= 0).astype(v.dtype)
    to_state, from_state, keep = phi_k, phi_q, None
    if decay is not None:
        gamma = decay.astype(v.dtype).reshape([1, heads, 1, 1, 1])
        within = within * gamma ** paddle.clip(lag, min=0).astype(v.dtype)
        to_state = scaled(to_state, gamma ** (size - 1 - index).astype(v.dtype).unsqueeze(1))
        from_state = scaled(from_state, gamma ** (index + 1).astype(v.dtype).unsqueeze(1))
        keep = gamma**size
    weights = scaled(paddle.matmul(phi_q, phi_k, transpose_y=True), within)
    if segment_ids is not None:
        ids = split_chunks(segment_ids.unsqueeze([1, 3]), size)  # [batch, 1, chunks, size, 1]; at the end all is 0
        last = ids[:, :, :, -1:]  # the segment that the state is of, after each chunk
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
        weights = scaled(weights, ids == ids.transpose([0, 1, 2, 4, 3]))
        to_state, from_state = scaled(to_state, ids == last), scaled(from_state, ids == before)
        same = (last == before).astype(v.dtype)
        keep = same if keep is None else keep * same
    sums = paddle.matmul(weights, v)
    if v.shape[2] > 1:
        states = running_states(paddle.matmul(to_state, v, transpose_x=True), keep)
        sums = sums + paddle.matmul(from_state, states)
    return join_chunks(sums, seq)


def segment_sums(phi_q: Tensor, phi_k: Tensor, v: Tensor, segment_ids: Tensor, chunk_size: int = 64) -> Tensor:
    r"""s_i = sum_j (phi_q_i . phi_k_j) v_j, j over the segment of i, before and after it.

    The tokens of a segment stand side by side, so only the first segment of a chunk can begin to the left of it and
    only its last can end to the right: two states, one from each side. Arguments and result as :func:`causal_sums`.
    """
    seq = phi_q.shape[2]
    size = max(1, min(chunk_size, seq))
    phi_q, phi_k, v = (split_chunks(x, size) for x in (phi_q, phi_k, v))
    ids = split_chunks(segment_ids.unsqueeze([1, 3]), size)  # [batch, 1, chunks, size, 1]
    weights = scaled(paddle.matmul(phi_q, phi_k, transpose_y=True), ids == ids.transpose([0, 1, 2, 4, 3]))
    sums = paddle.matmul(weights, v)
    if v.shape[2] > 1:
        first, last = ids[:, :, :, :1], ids[:, :, :, -1:]
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)  # the state in front of the first chunk is 0
        after = paddle.concat([first[:, :, 1:], first[:, :, -1:]], axis=2)
        from_left = paddle.matmul(scaled(phi_k, ids == last), v, transpose_x=True)
        from_left = running_states(from_left, (last == before).astype(v.dtype))
        from_right = paddle.matmul(scaled(phi_k, ids == first), v, transpose_x=True)
        from_right = running_states(from_right, (first == after).astype(v.dtype), reverse=True)
        sums = sums + paddle.matmul(scaled(phi_q, ids == before), from_left)
        sums = sums + paddle.matmul(scaled(phi_q, ids == after), from_right)
    return join_chunks(sums, seq)


def segment_weights(phi_q: Tensor, phi_k: Tensor, segment_ids: Tensor) -> Tensor:
    """sum_j phi_q_i . phi_k_j ``[batch, heads, seq, 1]``, j over the segment of i; arguments as :func:`causal_sums`."""
    return (phi_q * segment_totals(phi_k, segment_ids)).sum(axis=-1, keepdim=True)


def segment_totals(x: Tensor, segment_ids: Tensor) -> Tensor:
    """sum_j x_j, j over the segment of i: ``[batch, heads, seq, features]`` -> the same; equal ids side by side."""
    if 0 in x.shape:
        return x  # paddle 3.3.1 crashes in sums of no segments
    batch, heads, seq, features = x.shape
    begins = (segment_ids[:, 1:] != segment_ids[:, :-1]).astype("int64")
    begins = paddle.concat([paddle.ones_like(segment_ids[:, :1]).astype("int64"), begins], axis=1)
    number = paddle.cumsum(begins.flatten()) - 1  # of the segment of each token, through all rows
    tokens = x.transpose([0, 2, 1, 3]).reshape([-1, heads * features])  # [batch * seq, heads * features]
    sums = paddle.gather(paddle.geometric.segment_sum(tokens, number), number)
    return sums.reshape([batch, seq, heads, features]).transpose([0, 2, 1, 3])


def split_chunks(x: Tensor, size: int) -> Tensor:
    """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``, zeros at the end."""
    batch, heads, seq, features = x.shape
    missing = -seq % size
    if missing:
        x = paddle.concat([x, paddle.zeros([batch, heads, missing, features], dtype=x.dtype)], axis=2)
    return x.reshape([batch, heads, (seq + missing) // size, size, features])


def join_chunks(x: Tensor, seq: int) -> Tensor:
    """``[batch, heads, chunks, size, features]`` -> ``[batch, heads, seq, features]``, undoes :func:`split_chunks`."""
    batch, heads, chunks, size, features = x.shape
    x = x.reshape([batch, heads, chunks * size, features])
    return x if chunks * size == seq else x[:, :, :seq]


def running_states(updates: Tensor, keep: Tensor | None = None, reverse: bool = False) -> Tensor:
    """state_0 = 0, state_{c+1} = keep_c state_c + update_c: the state before each chunk.

    Args:
        updates: ``[batch, heads, chunks, features, value_dim]``.
        keep: ``[batch or 1, heads or 1, chunks, 1, 1]``; None for 1.
        reverse: from the last chunk to the first.

    Returns:
        As ``updates``; the update of the last chunk (with ``reverse`` the first) is in none of them.
    """
    step = -1 if reverse else 1
    if keep is not None:
        keep = paddle.unbind(keep.expand([*updates.shape[:3], 1, 1]), axis=2)[::step]
    updates = paddle.unbind(updates, axis=2)[::step]
    states = [paddle.zeros_like(updates[0])]
    for chunk, update in enumerate(updates[:-1]):
        state = states[-1] if keep is None else states[-1] * keep[chunk]
        states.append(state + update)
    return paddle.stack(states[::step], axis=2)
