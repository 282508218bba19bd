"""The loss of the efficient GlobalPointer, which stores none of the scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_spans
from paddle_rope.native.library import address, computes, dense, library
from paddle_rope.native.operator import Operator, keep
from paddle_rope.native.softmax_attention import rotation_tables


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_span_loss(
    qk: Tensor,
    type_scores: Tensor,
    rows: np.ndarray,
    spans: np.ndarray,
    rotate: Any = None,
    token_mask: Tensor | None = None,
    max_span_length: int | None = None,
) -> Tensor | None:
    """:func:`~paddle_rope.span_crossentropy` of :class:`~paddle_rope.EfficientGlobalPointer` from its projections; None
    where only plain forms compute.

    Args:
        qk: ``[batch, seq, 2 * head_size]``, q and k side by side.
        type_scores: ``[batch, seq, 2 * types]``, of starts and of ends, not yet halved.
        rows: int64 ``[count]``, text * types + type of each positive, ascending.
        spans: int64 ``[count, 2]``, its first and last token, ascending within a row; each once.
        rotate: of :meth:`~paddle_rope.RotaryPositionEmbedding.at`; None for no position.
        token_mask: bool or 0/1 ``[batch, seq]``, 0 where no span may start or end.
        max_span_length: longest span that is scored; None for any.

    Returns:
        float32 ``[batch, types]``; None also where a positive starts or ends at a masked token.
    """
    if not computes(qk, type_scores) or 0 in qk.shape or 0 in type_scores.shape:
        return None
    if not takes_spans(qk, type_scores, rows, token_mask):
        return None
    tables = rotation_tables(rotate, qk, qk.shape[2] // 2)
    if tables is None:
        return None
    batch, seq, _ = qk.shape
    types = type_scores.shape[2] // 2
    mask = None if token_mask is None else dense(token_mask.astype("bool"))
    if mask is not None and not mask.numpy()[(rows // types)[:, None], spans].all():
        return None
    bounds = np.searchsorted(rows, np.arange(batch * types + 1)).astype(np.int64)
    sizes = batch, seq, types, qk.shape[2] // 2, max_span_length or seq
    return _SpanLoss.apply(qk, type_scores, _Call(sizes, tables, mask, bounds, np.ascontiguousarray(spans)))


@dataclass
class _Call:
    """What is no input with a gradient. (In a tuple PyLayer would look for tensors.)"""

    sizes: tuple
    tables: tuple
    token_mask: Tensor | None
    bounds: np.ndarray
    spans: np.ndarray

    def arguments(self):
        cosine, sine, stride, interleaved = self.tables
        rotation = address(cosine), address(sine), stride, interleaved
        return *self.sizes, *rotation, address(self.token_mask), self.bounds.ctypes.data, self.spans.ctypes.data


class _SpanLoss(Operator):
    @staticmethod
    def compute(ctx, qk, type_scores, call):
        ctx.call, ctx.needs = call, [not tensor.stop_gradient for tensor in (qk, type_scores)]
        qk, type_scores = dense(qk), dense(type_scores)
        negative, positive = (paddle.empty([call.sizes[0], call.sizes[2]], qk.dtype) for _ in range(2))
        if any(ctx.needs):
            keep(ctx, qk, type_scores, negative, positive, watched=(call.token_mask,))
        library().span_loss_forward(*call.arguments(), *map(address, (qk, type_scores, negative, positive)))
        return negative + positive

    @staticmethod
    def differentiate(ctx, d_losses):
        saved, d_losses = ctx.saved_tensor(), dense(d_losses)
        gradients = [paddle.empty_like(tensor) for tensor in saved[:2]]
        library().span_loss_backward(*ctx.call.arguments(), *map(address, (*saved, d_losses, *gradients)))
        return tuple(gradient if needed else None for gradient, needed in zip(gradients, ctx.needs))
