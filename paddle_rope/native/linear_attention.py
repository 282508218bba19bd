"""Linear attention with elu + 1 and RoPE in the numerator, which keeps nothing but its inputs and output."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import paddle
from paddle import Tensor

from paddle_rope.native.checks import takes_attention
from paddle_rope.native.library import address, computes, dense, library
from paddle_rope.native.operator import Operator, keep
from paddle_rope.native.softmax_attention import rotation_tables


@paddle.jit.not_to_static  # which would rewrite what it sees in no graph
def native_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    num_heads: int,
    rotate: Any = None,
    key_mask: Tensor | None = None,
    normalizer: str = "unrotated",
    decay: Sequence[float] | None = None,
    causal: bool = False,
) -> Tensor | None:
    """:func:`~paddle_rope.linear_attention`, or the causal form, of heads that stand side by side, with elu + 1.

    Args:
        q, k, v: ``[batch, seq, num_heads * head_dim]``.
        num_heads: number of heads.
        rotate: of :meth:`~paddle_rope.RotaryPositionEmbedding.at`; None for no position.
        key_mask: bool ``[batch, seq]``, False at padding.
        normalizer: ``"unrotated"`` or ``"none"``.
        decay: gamma of each head, in (0, 1]; None for 1.
        causal: no token sees a later one.

    Returns:
        ``[batch, seq, num_heads * head_dim]``; None where only plain forms compute.
    """
    if not computes(q, k, v) or normalizer not in ("unrotated", "none") or 0 in q.shape:
        return None
    if not takes_attention(q, k, v, num_heads, key_mask, decay=decay):
        return None
    tables = rotation_tables(rotate, q, q.shape[2] // num_heads)
    if tables is None:
        return None
    masks = None if key_mask is None else dense(key_mask)
    gammas = None if decay is None else paddle.to_tensor(list(decay), dtype="float32")
    batch, seq, hidden = q.shape
    sizes = batch, seq, num_heads, hidden // num_heads
    return _LinearAttention.apply(q, k, v, _Call(sizes, tables, masks, causal, gammas, normalizer == "unrotated"))


@dataclass
class _Call:
    """What is no input with a gradient."""

    sizes: tuple
    tables: tuple
    key_mask: Tensor | None
    causal: bool
    gammas: Tensor | None
    divides: bool

    def arguments(self):
        cosine, sine, stride, interleaved = self.tables
        rotation = address(cosine), address(sine), stride, interleaved
        mask, gammas = address(self.key_mask), address(self.gammas)
        return *self.sizes, *rotation, mask, int(self.causal), gammas, int(self.divides)


class _LinearAttention(Operator):
    @staticmethod
    def compute(ctx, q, k, v, call):
        ctx.call, ctx.needs = call, [not tensor.stop_gradient for tensor in (q, k, v)]
        q, k, v = dense(q), dense(k), dense(v)
        batch, seq, heads, dim = call.sizes
        out, divisors, kept = paddle.empty(q.shape, q.dtype), paddle.empty([batch, heads, seq], q.dtype), None
        if any(ctx.needs):
            kept = paddle.empty([batch, heads, dim + 1, dim], q.dtype)
            # detached: out itself would hold the node that holds it
            keep(ctx, q, k, v, out.detach(), divisors, kept, watched=(call.key_mask,))
        library().linear_attention_forward(*call.arguments(), *map(address, (q, k, v, out, divisors, kept)))
        return out

    @staticmethod
    def differentiate(ctx, d_out):
        saved, d_out = ctx.saved_tensor(), dense(d_out)
        gradients = [paddle.empty_like(d_out) for _ in range(3)]
        library().linear_attention_backward(*ctx.call.arguments(), *map(address, (*saved, d_out, *gradients)))
        return tuple(gradient if needed else None for gradient, needed in zip(gradients, ctx.needs))
