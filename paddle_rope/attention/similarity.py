"""What all forms of linear attention share: the features of numerator and denominator, and the division."""

import paddle

from paddle_rope.attention.feature_maps import map_key, map_query
from paddle_rope.attention.placement import check_placement, rotate_at
from paddle_rope.layers import scaled

NORMALIZERS = ("unrotated", "rotated", "none")
# Lower bound of the denominator. Unrotated, it is a sum of what is not negative: the bound is for a query without any
# real key or positive feature, and far under what small features (FAVOR+ of long keys) sum to. Rotated, it passes
# through 0: the bound keeps the quotient finite in training.
MIN_DENOMINATOR = {"unrotated": 1e-30, "rotated": 1e-6}
# Added to the mean square of an output without denominator.
_MIN_MEAN_SQUARE = 1e-12


class DenominatorReport:
    """Counts the denominators under their ``MIN_DENOMINATOR``.

    With ``normalizer="unrotated"`` and a positive phi these are queries without a real key.
    Give one object to any number of calls as ``report``. Queries at padding (``key_mask`` False) do not count.
    """

    def __init__(self):
        self.below = 0
        self.total = 0

    @property
    def share(self):
        """Share of the denominators that were under the bound; 0 before the first call."""
        return self.below / self.total if self.total else 0.0

    def add(self, denominator, bound, key_mask=None):
        """``denominator`` ``[batch, heads, seq, 1]`` before it is bounded, ``key_mask`` bool ``[batch, seq]``."""
        is_below = denominator.detach() < bound
        counted = paddle.ones_like(is_below)
        if key_mask is not None:
            counted = key_mask.unsqueeze([1, 3]).expand(is_below.shape)
        self.below += int(paddle.logical_and(is_below, counted).astype("int64").sum())
        self.total += int(counted.astype("int64").sum())


def at_least_float32(*tensors):
    """float16 and bfloat16 become float32."""
    halves = (paddle.float16, paddle.bfloat16)
    return [x.astype("float32") if x.dtype in halves else x for x in tensors]


def check_options(feature_map, normalizer, report, placement, whole_sequence=False):
    """Raise ValueError for options that contradict each other.

    ``whole_sequence``: each query sees all keys of its row, as a map over the sequence needs.
    """
    check_placement(placement)
    if normalizer not in NORMALIZERS:
        raise ValueError(f"normalizer must be one of {', '.join(NORMALIZERS)}, got {normalizer!r}")
    if normalizer == "unrotated" and getattr(feature_map, "rotates_denominator", False):
        raise ValueError(f"{type(feature_map).__name__} is rotated in the denominator too: give normalizer='rotated'")
    if normalizer == "none" and report is not None:
        raise ValueError("normalizer='none' has no denominator to report")
    if not whole_sequence and getattr(feature_map, "over_sequence", False):
        name = type(feature_map).__name__
        raise ValueError(f"{name} looks at the whole sequence: it is neither causal nor for packed ones; take exp")


def similarity_features(q, k, rotate, key_mask, feature_map, normalizer, placement):
    """Features whose products are the weights of the numerator, and those of the denominator.

    Args:
        q, k: ``[batch, heads, seq, head_dim]``; the rest as :func:`~paddle_rope.linear_attention`.

    Returns:
        ``(phi_q, phi_k)`` of the numerator and ``(phi_q, phi_k)`` of the denominator, ``[batch, heads, seq, features]``
        each, 0 at masked keys; None in place of the second pair for ``normalizer="none"``.
    """
    phi_q, phi_k = map_query(feature_map, q), map_key(feature_map, k, key_mask)
    is_key = None if key_mask is None else key_mask.unsqueeze([1, 3])
    if is_key is not None:
        phi_k = scaled(phi_k, is_key)
    unrotated = rotated = phi_q, phi_k
    if rotate is not None:
        rotated = rotate_at("q", phi_q, rotate, placement), rotate_at("k", phi_k, rotate, placement)
    if hasattr(feature_map, "after_rotation"):
        phi_q, phi_k = (feature_map.after_rotation(x) for x in rotated)
        rotated = phi_q, phi_k if is_key is None else scaled(phi_k, is_key)
    return rotated, {"unrotated": unrotated, "rotated": rotated, "none": None}[normalizer]


def normalize(numerator, denominator, normalizer, report=None, key_mask=None):
    """numerator / max(denominator, ``MIN_DENOMINATOR``), or numerator / its root mean square without a denominator.

    Args:
        numerator: ``[batch, heads, seq, value_dim]``.
        denominator: ``[batch, heads, seq, 1]``; None for ``normalizer="none"``.
        normalizer: one of :data:`NORMALIZERS`.
        report: a :class:`DenominatorReport` or None.
        key_mask: for the report.

    Returns:
        ``[batch, heads, seq, value_dim]``.
    """
    if denominator is None:
        return numerator / paddle.sqrt(numerator.square().mean(axis=-1, keepdim=True) + _MIN_MEAN_SQUARE)
    if report is not None:
        report.add(denominator, MIN_DENOMINATOR[normalizer], key_mask)
    return numerator / paddle.clip(denominator, min=MIN_DENOMINATOR[normalizer])
