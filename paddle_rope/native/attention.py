"""Softmax attention that stores no weights ``[seq, seq]``, linear attention that stores its inputs and output, and the
loss of the efficient GlobalPointer, which stores no scores.
"""

from collections.abc import Sequence

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.native.dispatch import sizes_of, with_gradients
from paddle_rope.native.library import call, dense, dropout_arguments

_QKV = "batch seq heads dim"


def native_softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: tuple | None,
    key_mask: Tensor | None,
    dropout: float,
    segment_ids: Tensor | None,
    causal: bool,
    cu_seqlens: Tensor | None,
) -> Tensor | None:
    """:func:`~paddle_rope.softmax_attention`; None where the shapes do not fit or not all features turn. Where a text
    has nothing but padding the output is 0. ``cu_seqlens`` tells nothing that ``segment_ids`` do not.
    """
    sizes = sizes_of(
        (q, _QKV),
        (k, _QKV),
        (v, _QKV),
        (key_mask, "batch seq", paddle.bool),
        (segment_ids, "batch seq", paddle.int32, paddle.int64),
    )
    if sizes is None or not 0 <= dropout < 1 or not _fits_rope(rope, q.shape[0], q.shape[1], q.shape[3]):
        return None
    masks = dense(key_mask), None if segment_ids is None else dense(segment_ids.astype("int64"))
    arguments = (*q.shape, *_rope_arguments(rope), *masks, int(causal), *dropout_arguments(dropout))
    batch, seq, heads, _ = q.shape
    return _attend("softmax_attention", arguments, masks, q, k, v, [batch, heads, seq])


def native_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rope: tuple | None,
    key_mask: Tensor | None,
    normalizer: str,
    causal: bool,
    decay: Sequence[float] | Tensor | None,
) -> Tensor | None:
    """:func:`~paddle_rope.linear_attention` of elu + 1, without a rotated denominator; None for other arguments."""
    sizes = sizes_of((q, _QKV), (k, _QKV), (v, _QKV), (key_mask, "batch seq", paddle.bool))
    if sizes is None or not _fits_rope(rope, q.shape[0], q.shape[1], q.shape[3]):
        return None
    if normalizer not in ("unrotated", "none") or not _fits_decay(decay, sizes["heads"]):
        return None
    mask, gammas = dense(key_mask), None if decay is None else paddle.to_tensor(list(decay), dtype="float32")
    arguments = (*q.shape, *_rope_arguments(rope), mask, int(causal), gammas, int(normalizer == "unrotated"))
    batch, seq, heads, dim = q.shape
    return _attend("linear_attention", arguments, [mask], q, k, v, [batch, heads, seq], [batch, heads, dim + 1, dim])


def _attend(name, arguments, masks, q, k, v, *kept_shapes):
    """The output of an operator, which fills tensors of the given shapes with what its backward pass reads."""

    def compute(needs, q, k, v):
        out, kept = paddle.empty_like(q), [paddle.empty(shape, q.dtype) for shape in kept_shapes]
        saved = (q, k, v, out.detach(), *kept)
        call(name, *arguments, *saved, None, None, None, None)

        def differentiate(grad_out):
            gradients = [paddle.empty_like(grad_out) for _ in range(3)]
            call(name, *arguments, *saved, grad_out, *gradients)
            return gradients

        return out, differentiate, (*saved, *masks)

    return with_gradients(compute, q, k, v)


def native_span_loss(
    qk: Tensor,
    type_scores: Tensor,
    rows: np.ndarray,
    spans: np.ndarray,
    rope: tuple | None = None,
    token_mask: Tensor | None = None,
    max_span_length: int | None = None,
) -> Tensor | None:
    """The loss of :class:`~paddle_rope.EfficientGlobalPointer` from its projections.

    Args:
        qk: ``[batch, seq, 2 * head_size]``, q and k side by side.
        type_scores: ``[batch, seq, 2 * types]``, of starts and of ends, not yet halved.
        rows, spans: as from :func:`~paddle_rope.global_pointer.losses.sorted_spans`.
        rope, token_mask, max_span_length: of the head.

    Returns:
        float32 ``[batch, types]``; None where the shapes do not fit or a positive starts or ends at a masked token.
    """
    sizes = sizes_of((qk, "batch seq qk"), (type_scores, "batch seq types"), (token_mask, "batch seq"))
    if sizes is None or sizes["qk"] % 2 or sizes["types"] % 2:
        return None
    batch, seq, types, head_size = sizes["batch"], sizes["seq"], sizes["types"] // 2, sizes["qk"] // 2
    if not _fits_rope(rope, batch, seq, head_size) or (len(rows) and rows[-1] >= batch * types):
        return None
    mask = None if token_mask is None else dense(token_mask.astype("bool"))
    if mask is not None and not mask.numpy()[(rows // types)[:, None], spans].all():
        return None
    bounds = np.searchsorted(rows, np.arange(batch * types + 1)).astype(np.int64)
    given = *_rope_arguments(rope), mask, bounds, np.ascontiguousarray(spans)
    arguments = batch, seq, types, head_size, max_span_length or seq, *given

    def compute(needs, qk, type_scores):
        negative, positive = (paddle.empty([batch, types], qk.dtype) for _ in range(2))
        saved = (qk, type_scores, negative, positive)
        call("span_loss", *arguments, *saved, None, None, None)

        def differentiate(grad_losses):
            gradients = [paddle.empty_like(tensor) for tensor in (qk, type_scores)]
            call("span_loss", *arguments, *saved, grad_losses, *gradients)
            return gradients

        return negative + positive, differentiate, (*saved, mask)

    return with_gradients(compute, qk, type_scores)


def _fits_rope(rope: tuple | None, batch: int, seq: int, head_dim: int) -> bool:
    """Whether all features of ``[batch, seq, .., head_dim]`` turn by these float32 tables; also for None."""
    if rope is None:
        return True
    cos, sin, *_ = rope
    if cos.shape != sin.shape or cos.shape[-2:] != [seq, head_dim // 2] or not cos.dtype == sin.dtype == paddle.float32:
        return False
    return head_dim % 2 == 0 and cos.stop_gradient and sin.stop_gradient and cos.shape[:-2] in ([], [1], [batch])


def _rope_arguments(rope: tuple | None) -> tuple:
    """cos, sin, numbers from one text to the next, whether pairs are interleaved: as in kernels.h."""
    if rope is None:
        return None, None, 0, 0
    cos, sin, layout = rope
    each = cos.ndim == 3 and cos.shape[0] > 1
    return dense(cos), dense(sin), cos.shape[-2] * cos.shape[-1] if each else 0, int(layout == "interleaved")


def _fits_decay(decay, heads):
    """None, or a list of one number in (0, 1] for each head; what is trained has no native form."""
    if decay is None:
        return True
    return isinstance(decay, (list, tuple)) and len(decay) == heads and all(0 < gamma <= 1 for gamma in decay)
