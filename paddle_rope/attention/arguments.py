"""What attention kernels share: checks of arguments, the placement of RoPE, heads before tokens."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.attention.feature_maps import FeatureMapLike, as_feature_map
from paddle_rope.backend import is_known, values_on_cpu
from paddle_rope.options import NORMALIZER, PLACEMENTS, check_feature_map
from paddle_rope.rotary import Rope

_OF_TOKENS = {"rope", "key_mask", "segment_ids", "score_bias"}  # arguments that must have the number of tokens
_OF_MASKS = (paddle.bool, paddle.uint8, paddle.int8, paddle.int16, paddle.int32, paddle.int64)


def check_layout(q: Tensor, k: Tensor, v: Tensor, *given: Any, **named: Any) -> None:
    """Raise ValueError unless the ``q`` of an attention kernel is ``[batch, seq, heads, head_dim]`` with a token.

    Warn if it has fewer tokens than heads, as ``[batch, heads, seq, head_dim]`` has, and nothing is given that must
    have the number of tokens.
    """
    if q.ndim != 4:
        raise ValueError(f"q must be [batch, seq, heads, head_dim], got {list(q.shape)}")
    check_length("q", q)
    if is_known(*q.shape[1:3]) and q.shape[1] < q.shape[2] and not (given or named.keys() & _OF_TOKENS):
        found = f"q {list(q.shape)} has fewer tokens, {q.shape[1]}, than heads, {q.shape[2]}"
        warnings.warn(f"{found}; if it is [batch, heads, seq, head_dim], transpose q, k and v", stacklevel=3)


def check_length(name: str, x: Tensor) -> None:
    """Raise ValueError if ``x`` ``[batch, seq, ...]``, called ``name``, has no token; static graphs do not know it."""
    if is_known(x.shape[1]) and x.shape[1] == 0:
        raise ValueError(f"{name} {list(x.shape)} has no token; leave empty texts out")


def as_mask(name: str, mask: Tensor | None, batch: int, seq: int) -> Tensor | None:
    """A mask of tokens, called ``name``, as bool ``[batch or 1, seq]``; None for None. Raises ValueError unless it is
    bool or integer (1 for tokens, 0 for padding) and, outside of static graphs, of that shape."""
    if mask is None:
        return None
    if mask.dtype not in _OF_MASKS:
        remedy = f"for an additive mask (0 and -10000) give {name} == 0, for 1.0 and 0.0 give {name} == 1"
        raise ValueError(f"{name} must be bool or integers (1 for tokens, 0 for padding), got {mask.dtype}; {remedy}")
    if is_known(batch, seq, *mask.shape) and list(mask.shape) not in ([batch, seq], [1, seq]):
        raise ValueError(f"{name} must be [batch, seq] = {[batch, seq]}, got {list(mask.shape)}")
    return mask if mask.dtype == paddle.bool else mask.astype("bool")


def check_placement(placement: str) -> None:
    """Raise ValueError unless ``placement`` is one of :data:`~paddle_rope.options.PLACEMENTS`."""
    if placement not in PLACEMENTS:
        raise ValueError(f"placement must be some of the letters qkvo in this order, such as 'qk', got {placement!r}")


def check_linear_options(
    feature_map: FeatureMapLike, normalizer: str, placement: str, whole_sequence: bool = False
) -> None:
    """Raise ValueError for options that contradict each other; ``whole_sequence``: a query sees all keys of its row."""
    check_placement(placement)
    NORMALIZER.check("normalizer", normalizer)
    phi = as_feature_map(feature_map)
    check_feature_map(type(phi).__name__, normalizer, whole_sequence, phi.over_sequence, phi.rotates_denominator)


def check_decay(decay: Sequence[float] | Tensor | None, heads: int) -> tuple[float, ...] | Tensor | None:
    """The decay, a tuple if it is not a tensor. Raises ValueError unless it is a number in (0, 1] for each head."""
    if decay is None:
        return None
    is_list = isinstance(decay, (list, tuple, np.ndarray))
    given = np.asarray(decay, dtype=np.float64) if is_list else values_on_cpu(decay)
    if given is not None and (given.shape != (heads,) or not ((given > 0) & (given <= 1)).all()):
        raise ValueError(f"decay must be {heads} numbers in (0, 1], one for each head, got {given.tolist()}")
    return tuple(given.tolist()) if given is not None and is_list else decay


def placed(rope: Rope | None, placement: str) -> list[tuple]:
    """The arguments of :func:`~paddle_rope.apply_rotary` after x for q, k, v and the output (kexue.fm 10862): the
    rotation, for the output its inverse, or none where ``placement`` lacks the letter.

    >>> from paddle_rope import RotaryPositionEmbedding
    >>> [len(one) for one in placed(RotaryPositionEmbedding(2).cos_sin(1), "qk")]
    [3, 3, 0, 0]
    """
    if rope is None:
        return [()] * 4
    if not isinstance(rope, Rope):
        raise ValueError(f"rope must be a Rope, from rotary.cos_sin(positions), or None, got {type(rope).__name__}")
    return [(rope.inverse() if letter == "o" else rope) if letter in placement else () for letter in "qkvo"]


def by_head(x: Tensor) -> Tensor:
    """``[batch, seq, heads, size]`` <-> ``[batch, heads, seq, size]``, for the matrix products of each head."""
    return x.transpose([0, 2, 1, 3])


def transposed(x: Tensor) -> Tensor:
    """``[..., rows, columns]`` -> ``[..., columns, rows]``."""
    return x.transpose([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def for_all_heads(x: Tensor, heads: int) -> Tensor:
    """Grouped keys or values ``[batch, seq, groups, size]``, each repeated for every query head that shares it."""
    return x if x.shape[2] == heads else paddle.repeat_interleave(x, heads // x.shape[2], axis=2)


def check_segments(segment_ids: Tensor | None, batch: int, seq: int, contiguous: bool = False) -> None:
    """Raise ValueError unless ``segment_ids`` is None or integer ``[batch, seq]`` and, if ``contiguous``, equal ids are
    adjacent, as far as a static graph or a GPU lets one know."""
    if segment_ids is None:
        return
    if is_known(batch, seq, *segment_ids.shape) and list(segment_ids.shape) != [batch, seq]:
        raise ValueError(f"segment_ids must be [batch, seq] = {[batch, seq]}, got {list(segment_ids.shape)}")
    if segment_ids.dtype not in (paddle.int32, paddle.int64):
        raise ValueError(f"segment_ids must be int32 or int64, got {segment_ids.dtype}")
    rows = values_on_cpu(segment_ids) if contiguous else None
    for row in () if rows is None else rows:
        if 1 + (row[1:] != row[:-1]).sum() != len(set(row.tolist())):
            raise ValueError("linear attention needs the tokens of a segment side by side; segment_ids has gaps")


def cumulative_lengths(segment_ids: np.ndarray) -> np.ndarray:
    """The start of each run of equal ids in the concatenated rows, then the end: int32 ``[runs + 1]``.

    This is ``cu_seqlens`` of :func:`~paddle_rope.softmax_attention`, to be computed on the host with the batch.

    >>> cumulative_lengths(np.array([[7, 7, 7, 8], [9, 9, -1, -1]]))
    array([0, 3, 4, 6, 8], dtype=int32)
    """
    begins = np.diff(segment_ids, axis=1, prepend=segment_ids[:, :1] - 1) != 0
    return np.append(np.flatnonzero(begins), begins.size).astype("int32")
