"""Causal sums of linear attention, chunk by chunk: time and memory linear in the length."""

import paddle

from paddle_rope.layers import scaled


def causal_sums(phi_q, phi_k, v, decay=None, segment_ids=None, chunk_size=64):
    r"""s_i = sum_{j <= i} gamma^(i - j) (phi_q_i . phi_k_j) v_j.

    Inside a chunk the weights are taken as they are, ``[chunk_size, chunk_size]``; what comes before a chunk enters
    through one matrix, state = sum_j gamma^(..) phi_k_j v_j^T, which runs from chunk to chunk. No power of gamma has a
    negative exponent.

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
        ids = split_ids(segment_ids, size)  # [batch, 1, chunks, size, 1]
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


def split_chunks(x, size):
    """``[batch, heads, seq, features]`` -> ``[batch, heads, chunks, size, features]``, zeros at the end."""
    batch, heads, seq, features = x.shape
    missing = -seq % size
    if missing:
        x = paddle.concat([x, paddle.zeros([batch, heads, missing, features], dtype=x.dtype)], axis=2)
    return x.reshape([batch, heads, (seq + missing) // size, size, features])


def join_chunks(x, seq):
    """``[batch, heads, chunks, size, features]`` -> ``[batch, heads, seq, features]``, undoes :func:`split_chunks`."""
    batch, heads, chunks, size, features = x.shape
    x = x.reshape([batch, heads, chunks * size, features])
    return x if chunks * size == seq else x[:, :, :seq]


def split_ids(segment_ids, size):
    """``[batch, seq]`` -> ``[batch, 1, chunks, size, 1]``, the last id repeated at the end."""
    batch, seq = segment_ids.shape
    missing = -seq % size
    if missing:
        segment_ids = paddle.concat([segment_ids, segment_ids[:, -1:].expand([batch, missing])], axis=1)
    return segment_ids.reshape([batch, 1, (seq + missing) // size, size, 1])


def running_states(updates, keep=None, reverse=False):
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
