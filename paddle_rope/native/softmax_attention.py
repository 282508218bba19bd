"""Softmax attention with RoPE, mask and dropout, which stores nothing of the size [seq, seq]."""

from dataclasses import dataclass
from typing import Any

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_attention, takes_tables
from paddle_rope.native.library import address, computes, dense, dropout_arguments, library
from paddle_rope.native.operator import Operator, keep


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    num_heads: int,
    rotate: Any = None,
    key_mask: Tensor | None = None,
    p: float = 0.0,
    segment_ids: Tensor | None = None,
    causal: bool = False,
) -> Tensor | None:
    """:func:`~paddle_rope.softmax_attention` of heads that stand side by side; None where only plain forms compute.

    Args:
        q, k, v: ``[batch, seq, num_heads * head_dim]``.
        num_heads: number of heads.
        rotate: of :meth:`~paddle_rope.RotaryPositionEmbedding.at`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding. Where a text has nothing else the output is 0.
        p: probability of the dropout of the weights, 0 in evaluation.
        segment_ids: integer ``[batch, seq]`` of packed texts.
        causal: no token sees a later one.

    Returns:
        ``[batch, seq, num_heads * head_dim]``.
    """
    if not computes(q, k, v) or not 0 <= p < 1 or 0 in q.shape:
        return None
    if not takes_attention(q, k, v, num_heads, key_mask, segment_ids):
        return None
    tables = rotation_tables(rotate, q, q.shape[2] // num_heads)
    if tables is None:
        return None
    masks = None if key_mask is None else dense(key_mask)
    segments = None if segment_ids is None else dense(segment_ids.astype("int64"))
    batch, seq, hidden = q.shape
    sizes = batch, seq, num_heads, hidden // num_heads
    return _SoftmaxAttention.apply(q, k, v, _Call(sizes, tables, masks, segments, causal, dropout_arguments(p)))


def rotation_tables(rotate: Any, x: Tensor, head_dim: int) -> tuple | None:
    """(cos, sin, numbers from one text to the next, whether pairs are interleaved) of a rotation of ``x``
    ``[batch, seq, ...]``; None where it has no tables that fit x."""
    if rotate is None:
        return None, None, 0, 0
    tables = rotate.tables(x.shape[1]) if hasattr(rotate, "tables") else None
    if tables is None:
        return None
    cosine, sine, interleaved = tables
    if not takes_tables(cosine, sine, x, head_dim):
        return None
    each = cosine.ndim == 3 and cosine.shape[0] > 1
    return dense(cosine), dense(sine), cosine.shape[-2] * cosine.shape[-1] if each else 0, int(interleaved)


@dataclass
class _Call:
    """What is no input with a gradient. (In a tuple PyLayer would look for tensors.)"""

    sizes: tuple
    tables: tuple
    key_mask: Tensor | None
    segment_ids: Tensor | None
    causal: bool
    dropout: tuple

    def arguments(self):
        cosine, sine, stride, interleaved = self.tables
        masks = address(self.key_mask), address(self.segment_ids)
        rotation = address(cosine), address(sine), stride, interleaved
        return *self.sizes, *rotation, *masks, int(self.causal), *self.dropout


class _SoftmaxAttention(Operator):
    @staticmethod
    def compute(ctx, q, k, v, call):
        ctx.call, ctx.needs = call, [not tensor.stop_gradient for tensor in (q, k, v)]
        q, k, v = dense(q), dense(k), dense(v)
        out, log_sums = paddle.empty(q.shape, q.dtype), None
        if any(ctx.needs):
            log_sums = paddle.empty([q.shape[0], call.sizes[2], q.shape[1]], q.dtype)
            # detached: out itself would hold the node that holds it
            keep(ctx, q, k, v, out.detach(), log_sums, watched=(call.key_mask, call.segment_ids))
        library().softmax_attention_forward(*call.arguments(), *map(address, (q, k, v, out, log_sums)))
        return out

    @staticmethod
    def differentiate(ctx, d_out):
        saved, d_out = ctx.saved_tensor(), dense(d_out)
        gradients = [paddle.empty_like(d_out) for _ in range(3)]
        library().softmax_attention_backward(*ctx.call.arguments(), *map(address, (*saved, d_out, *gradients)))
        return tuple(gradient if needed else None for gradient, needed in zip(gradients, ctx.needs))
