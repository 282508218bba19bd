"""Bidirectional sums of linear attention for packed sequences, in time and memory linear in the length.

The tokens of a segment stand side by side, so a chunk of tokens holds whole segments, and at most one that goes on to
the left of it, its first, and one that goes on to the right of it, its last.
"""

import paddle

from paddle_rope.attention.chunks import join_chunks, running_states, split_chunks, split_ids
from paddle_rope.layers import scaled


def segment_sums(phi_q, phi_k, v, segment_ids, chunk_size=64):
    r"""s_i = sum_j (phi_q_i . phi_k_j) v_j, j over the segment of i.

    Inside a chunk the weights are taken as they are, ``[chunk_size, chunk_size]``. What a segment has outside the chunk
    enters through matrices, sum_j phi_k_j v_j^T, one that runs from chunk to chunk from the left, one from the right.

    Args:
        phi_q, phi_k: ``[batch, heads, seq, features]``.
        v: ``[batch, heads, seq, value_dim]``.
        segment_ids: integer ``[batch, seq]``, equal ids side by side.
        chunk_size: any positive number; memory grows with seq * (chunk_size + features * value_dim / chunk_size).

    Returns:
        ``[batch, heads, seq, value_dim]``.
    """
    seq = phi_q.shape[2]
    size = max(1, min(chunk_size, seq))
    phi_q, phi_k, v = (split_chunks(x, size) for x in (phi_q, phi_k, v))
    ids = split_ids(segment_ids, size)  # [batch, 1, chunks, size, 1]
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


def segment_weights(phi_q, phi_k, segment_ids):
    """sum_j phi_q_i . phi_k_j, j over the segment of i, from one sum of keys for each segment.

    Args:
        phi_q, phi_k: ``[batch, heads, seq, features]``.
        segment_ids: integer ``[batch, seq]``, equal ids side by side.

    Returns:
        ``[batch, heads, seq, 1]``.
    """
    batch, heads, seq, features = phi_q.shape
    begins = (segment_ids[:, 1:] != segment_ids[:, :-1]).astype("int64")
    begins = paddle.concat([paddle.ones_like(segment_ids[:, :1]).astype("int64"), begins], axis=1)
    number = paddle.cumsum(begins.flatten()) - 1  # of the segment of each token, through all rows
    keys = phi_k.transpose([0, 2, 1, 3]).reshape([-1, heads * features])  # [batch * seq, heads * features]
    sums = paddle.gather(paddle.geometric.segment_sum(keys, number), number)
    sums = sums.reshape([batch, seq, heads, features]).transpose([0, 2, 1, 3])
    return (phi_q * sums).sum(axis=-1, keepdim=True)
