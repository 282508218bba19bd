"""Linear attention with RoPE in the numerator only."""

import paddle

from paddle_rope.attention.feature_maps import elu_plus_one

# Lower bound of the denominator: with phi > 0 only a query without any real key comes near it.
MIN_DENOMINATOR = 1e-6


def linear_attention(q, k, v, rotate=None, key_mask=None, feature_map=elu_plus_one):
    r"""o_i = sum_j (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j), bidirectional.

    The denominator is not rotated: it stays positive, while the rotated sum may be zero or negative
    (kexue.fm 8265, the section on linear attention; arXiv 2104.09864, eq. 19). The sum over j is taken once for all
    i, so time and memory are linear in seq. Sums are kept in float32 at least, also for half-precision inputs and
    under AMP.

    Args:
        q, k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys enter neither numerator nor denominator.
        feature_map: phi, elementwise and positive.

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``. The denominator is bounded from below by
        ``MIN_DENOMINATOR``: where every key is padding the output is 0.
    """
    dtype = q.dtype
    if dtype in (paddle.float16, paddle.bfloat16):
        q, k, v = q.astype("float32"), k.astype("float32"), v.astype("float32")
    with paddle.amp.auto_cast(enable=False):  # which would take the sums in half precision
        phi_q, phi_k = feature_map(q), feature_map(k)
        if key_mask is not None:
            phi_k = phi_k * key_mask.astype(phi_k.dtype).unsqueeze([1, 3])
        denominator = paddle.matmul(phi_q, phi_k.sum(axis=2, keepdim=True), transpose_y=True)  # [batch, heads, seq, 1]
        if rotate is not None:
            phi_q, phi_k = rotate(phi_q), rotate(phi_k)
        key_values = paddle.matmul(phi_k, v, transpose_x=True)  # [batch, heads, head_dim, value_dim]
        numerator = paddle.matmul(phi_q, key_values)  # [batch, heads, seq, value_dim]
        output = numerator / paddle.clip(denominator, min=MIN_DENOMINATOR)
    return output.astype(dtype)
