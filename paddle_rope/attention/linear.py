"""Bidirectional linear attention, by default with RoPE in the numerator only."""

import paddle

from paddle_rope.attention.feature_maps import elu_plus_one
from paddle_rope.attention.packing import check_segments
from paddle_rope.attention.placement import rotate_at
from paddle_rope.attention.segments import segment_sums, segment_weights
from paddle_rope.attention.similarity import at_least_float32, check_options, normalize, similarity_features
from paddle_rope.precision import without_amp


@paddle.jit.not_to_static  # traced as it is: paddle 3.x cannot rewrite a default that is a function
def linear_attention(
    q,
    k,
    v,
    rotate=None,
    key_mask=None,
    feature_map=elu_plus_one,
    normalizer="unrotated",
    segment_ids=None,
    report=None,
    placement="qk",
):
    r"""o_i = sum_j (R_i phi(q_i)) . (R_j phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j), bidirectional.

    The denominator is not rotated: it stays positive, while the rotated sum may be zero or negative
    (kexue.fm 8265, eq. 19; arXiv 2104.09864, eq. 19). The sum over j is taken once for all
    i, so time and memory are linear in seq. Sums are kept in float32 at least, also for half-precision inputs and
    under AMP.

    Args:
        q, k: ``[batch, heads, seq, head_dim]``.
        v: ``[batch, heads, seq, value_dim]``.
        rotate: R, e.g. a :class:`~paddle_rope.RotaryPositionEmbedding`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding; padded keys enter neither numerator nor denominator.
        feature_map: phi, not negative: one of :mod:`~paddle_rope.attention.feature_maps`.
        normalizer: ``"unrotated"``, as above; ``"rotated"``: R in the denominator too, which can vanish or turn
            negative and is then cut at the bound (kept to show why not; see ``report``; right for ``OnePlusCosine``);
            ``"none"``: o_i is the numerator over its root mean square, sqrt(mean over value_dim + 1e-12).
        segment_ids: integer ``[batch, seq]`` for packed sequences: j runs over the tokens with the id of i. Equal ids
            stand side by side. Still linear in seq, whatever the number of segments.
        report: a :class:`~paddle_rope.attention.DenominatorReport` that counts denominators under the bound.
        placement: what R turns, some of the letters ``qkvo``: with v and o, o_i = R_i^T sum_j .. R_j v_j
            (kexue.fm 10862; see :mod:`~paddle_rope.attention.placement`).

    Returns:
        ``[batch, heads, seq, value_dim]`` in the dtype of ``q``. The denominator is bounded from below by
        ``MIN_DENOMINATOR``, 1e-30 unrotated and 1e-6 rotated: where every key is padding the output is 0.

    Raises:
        ValueError: an unknown normaliser or placement, options that contradict each other, segments with gaps;
            ``segment_ids`` in a static graph of unknown length.
    """
    check_options(feature_map, normalizer, report, placement, whole_sequence=segment_ids is None)
    if segment_ids is not None:
        if q.shape[2] < 0:
            raise ValueError("linear attention with segment_ids needs a known length in static graphs")
        check_segments(segment_ids, k.shape[0], k.shape[2], side_by_side=True)
    dtype = q.dtype
    q, k, v = at_least_float32(q, k, v)
    with without_amp():  # which would take the sums in half precision
        above, below = similarity_features(q, k, rotate, key_mask, feature_map, normalizer, placement)
        v = rotate_at("v", v, rotate, placement)
        if segment_ids is None:
            denominator = None if below is None else _sum_of_weights(*below)
            key_values = paddle.matmul(above[1], v, transpose_x=True)  # [batch, heads, features, value_dim]
            numerator = paddle.matmul(above[0], key_values)  # [batch, heads, seq, value_dim]
        else:
            denominator = None if below is None else segment_weights(*below, segment_ids)
            numerator = segment_sums(*above, v, segment_ids)
        output = rotate_at("o", normalize(numerator, denominator, normalizer, report, key_mask), rotate, placement)
    return output.astype(dtype)


def _sum_of_weights(phi_q, phi_k):
    """sum_j phi_q_i . phi_k_j ``[batch, heads, seq, 1]``."""
    return paddle.matmul(phi_q, phi_k.sum(axis=2, keepdim=True), transpose_y=True)
