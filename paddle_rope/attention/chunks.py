"""Causal sums of linear attention, chunk by chunk: time and memory linear in the length."""

import paddle


def causal_sums(phi_q, phi_k, v, decay=None, segment_ids=None, chunk_size=64, strict=False):
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
        strict: leave j = i out.

    Returns:
        ``[batch, heads, seq, value_dim]``.
    """
    batch, heads, seq, _ = phi_q.shape
    size = min(chunk_size, seq)
    chunks = -(-seq // size)

    def split(x):  # -> [batch, heads, chunks, size, features], zeros at the end
        if chunks * size > seq:
            zeros = paddle.zeros([batch, heads, chunks * size - seq, x.shape[-1]], dtype=x.dtype)
            x = paddle.concat([x, zeros], axis=2)
        return x.reshape([batch, heads, chunks, size, x.shape[-1]])

    phi_q, phi_k, v = split(phi_q), split(phi_k), split(v)
    index = paddle.arange(size)
    lag = index.unsqueeze(1) - index  # i - j, [size, size]
    within = (lag > 0 if strict else lag >= 0).astype(v.dtype)
    to_state, from_state, keep = phi_k, phi_q, [1.0] * chunks
    if decay is not None:
        gamma = decay.astype(v.dtype).reshape([1, heads, 1, 1, 1])
        within = within * gamma ** paddle.clip(lag, min=0).astype(v.dtype)
        to_state = to_state * gamma ** (size - 1 - index).astype(v.dtype).unsqueeze(1)
        from_state = from_state * gamma ** (index + 1).astype(v.dtype).unsqueeze(1)
        keep = [gamma.squeeze(2) ** size] * chunks
    if segment_ids is not None:
        ids = _chunked_ids(segment_ids, chunks, size)  # [batch, 1, chunks, size, 1]
        last = ids[:, :, :, -1:]  # the segment that the state is of, after each chunk
        before = paddle.concat([last[:, :, :1], last[:, :, :-1]], axis=2)
        within = within * (ids == ids.transpose([0, 1, 2, 4, 3])).astype(v.dtype)
        to_state = to_state * (ids == last).astype(v.dtype)
        from_state = from_state * (ids == before).astype(v.dtype)
        keep = [k * same for k, same in zip(keep, paddle.unbind((last == before).astype(v.dtype), axis=2))]
    sums = paddle.matmul(paddle.matmul(phi_q, phi_k, transpose_y=True) * within, v)
    if chunks > 1:
        updates = paddle.unbind(paddle.matmul(to_state, v, transpose_x=True), axis=2)
        state = paddle.zeros_like(updates[0])  # [batch, heads, features, value_dim]
        states = []
        for update, kept in zip(updates, keep):
            states.append(state)
            state = state * kept + update
        sums = sums + paddle.matmul(from_state, paddle.stack(states, axis=2))
    sums = sums.reshape([batch, heads, chunks * size, sums.shape[-1]])
    return sums if chunks * size == seq else sums[:, :, :seq]


def _chunked_ids(segment_ids, chunks, size):
    """``[batch, seq]`` -> ``[batch, 1, chunks, size, 1]``, the last id repeated at the end."""
    batch, seq = segment_ids.shape
    if chunks * size > seq:
        segment_ids = paddle.concat([segment_ids, segment_ids[:, -1:].expand([batch, chunks * size - seq])], axis=1)
    return segment_ids.reshape([batch, 1, chunks, size, 1])
