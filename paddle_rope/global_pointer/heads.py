"""GlobalPointer: a score for every type and every pair (start, end) of tokens, or only the pairs in a band.

Sources: Su, https://kexue.fm/archives/8373 (GlobalPointer) and https://kexue.fm/archives/8877 (Efficient
GlobalPointer). The factors 1 / sqrt(head_size) and 1 / 2 come from the author's code, bert4keras.
"""

import math

import paddle
from paddle import Tensor, nn

from paddle_rope.attention.arguments import as_mask, check_length
from paddle_rope.backend import length_of, padded
from paddle_rope.global_pointer.decoding import MASKED_LOGIT
from paddle_rope.global_pointer.losses import sorted_spans, span_crossentropy
from paddle_rope.layers import Linear
from paddle_rope.native.dispatch import is_enabled
from paddle_rope.native.operators import native_span_loss
from paddle_rope.options import WIDEST_BAND, integer, optional
from paddle_rope.rotary import RotaryPositionEmbedding

# Smallest block of queries of a band. Blocks as wide as the band compute twice the products needed; blocks narrower
# than this are slower on CPU.
_BLOCK = 32


def mask_non_spans(
    logits: Tensor, token_mask: Tensor | None = None, max_span_length: int | None = None, ordered: bool = True
) -> Tensor:
    """The logits ``[batch, types, seq, seq or max_span_length]``, by start and by end or, in a band, length, with
    ``MASKED_LOGIT`` at pairs that are not spans: the end is before the start, unless ``ordered`` is False, or past the
    text, or ``token_mask`` ``[batch, seq]`` excludes one of the two.

    >>> mask_non_spans(paddle.ones([1, 1, 2, 2])).tolist()
    [[[[1.0, 1.0], [-10000.0, 1.0]]]]
    """
    token_mask = as_mask("token_mask", token_mask, logits.shape[0], logits.shape[2])
    if token_mask is None:
        token_mask = paddle.ones_like(logits[:1, 0, :, 0], dtype="bool")
    token_mask.stop_gradient = True  # paddle 2.6.2 requires this to expand it in static graphs
    if max_span_length is None:
        position = paddle.arange(length_of(logits, 2))
        first = position if ordered else paddle.zeros_like(position)
        is_end = (position >= first.unsqueeze(1)).unsqueeze(0)  # [1, seq, seq], end >= start
        is_end = paddle.logical_and(is_end, token_mask.unsqueeze(1))
    else:
        is_end = band_products(None, token_mask.astype("float32").unsqueeze(-1), max_span_length) > 0
    is_span = paddle.logical_and(is_end, token_mask.unsqueeze(2)).unsqueeze(1)
    return paddle.where(is_span.expand_as(logits), logits, paddle.full_like(logits, MASKED_LOGIT))


class GlobalPointer(nn.Layer):
    r"""s_t(i, j) = (R_i q_{t,i}) . (R_j k_{t,j}) / sqrt(head_size), with a separate q and k for each type t.

    Args:
        hidden_size: size of the hidden states.
        num_types: number of span types.
        head_size: size of q and k, even.
        use_rope: rotate q and k; without it the scores do not depend on the distance between i and j.
        max_span_length: score only spans of at most this many tokens, in time and memory linear in seq instead of
            quadratic; None for all spans. The parameters and the scores of these spans do not change.
        ordered: score only pairs with i <= j, spans; without it, any two tokens.

    >>> head = GlobalPointer(hidden_size=8, num_types=3, head_size=4)
    >>> tuple(head(paddle.ones([2, 5, 8])).shape)  # [batch, types, seq, seq]
    (2, 3, 5, 5)
    """

    def __init__(
        self,
        hidden_size: int,
        num_types: int,
        head_size: int = 64,
        use_rope: bool = True,
        max_span_length: int | None = None,
        ordered: bool = True,
    ) -> None:
        super().__init__()
        optional(integer(1, WIDEST_BAND)).check("max_span_length", max_span_length)
        if not (ordered or max_span_length is None):
            raise ValueError(f"expected no max_span_length for pairs in any order, got {max_span_length}")
        self.max_span_length = max_span_length
        self.ordered = ordered
        self.num_types = num_types
        self.head_size = head_size
        self.rotary = RotaryPositionEmbedding(head_size) if use_rope else None
        self._make_projections(hidden_size)

    def _make_projections(self, hidden_size):
        self.dense = Linear(hidden_size, self.num_types * 2 * self.head_size)

    @paddle.jit.not_to_static  # its rewriting takes long, and mistakes unknown sizes for tensors
    def forward(self, hidden: Tensor, token_mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """Score all spans of ``hidden`` ``[batch, seq, hidden]``.

        Args:
            token_mask: bool or 0/1 ``[batch, seq]``, 0 where no span may start or end (padding, special tokens).
            positions: ``[seq]`` or ``[batch, seq]``, integer or real, for RoPE; by default 0, 1, 2, ... in each row.

        Returns:
            Logits ``[batch, types, seq, seq]``: [b, t, i, j] scores tokens i..j (j inclusive) as a span of type t;
            above 0 means span. With ``max_span_length`` the band ``[batch, types, seq, max_span_length]``:
            [b, t, i, d] scores tokens i..i+d. Pairs that are not spans have ``MASKED_LOGIT``.
        """
        check_length("hidden", hidden)
        qk = self.dense(hidden).reshape([0, 0, self.num_types, 2, self.head_size])
        if self.rotary is not None:
            qk = self.rotary(qk, positions=positions)
        qk = qk.transpose([0, 3, 2, 1, 4])  # [batch, 2, types, seq, head_size]
        logits = band_products(qk[:, 0] * (1.0 / math.sqrt(self.head_size)), qk[:, 1], self.max_span_length)
        return mask_non_spans(logits, token_mask, self.max_span_length, self.ordered)

    def loss(
        self, hidden: Tensor, spans: Tensor, token_mask: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """:func:`span_crossentropy` of the logits of :meth:`forward`, ``[batch, types]``; take the mean."""
        return span_crossentropy(self(hidden, token_mask, positions), spans, self.max_span_length, self.ordered)


class EfficientGlobalPointer(GlobalPointer):
    r"""s_t(i, j) = (R_i q_i) . (R_j k_j) / sqrt(head_size) + (w_t [q_i; k_i] + u_t [q_j; k_j]) / 2.

    One q and k for all types find the spans; a start and an end score for each type tell the type. Each further type
    costs 4 * head_size + 2 parameters instead of 2 * hidden_size * head_size. Arguments as for :class:`GlobalPointer`.

    >>> head = EfficientGlobalPointer(hidden_size=8, num_types=3, head_size=4, max_span_length=2)
    >>> hidden, spans = paddle.ones([1, 5, 8]), paddle.to_tensor([[[0, 1, 2]]])  # tokens 1 to 2, of type 0
    >>> tuple(head.loss(hidden, spans).shape)  # [batch, types]
    (1, 3)
    """

    def _make_projections(self, hidden_size):
        self.dense = Linear(hidden_size, 2 * self.head_size)
        self.type_scores = Linear(2 * self.head_size, 2 * self.num_types)

    @paddle.jit.not_to_static  # its rewriting takes long, and mistakes unknown sizes for tensors
    def forward(self, hidden: Tensor, token_mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """As :meth:`GlobalPointer.forward`."""
        check_length("hidden", hidden)
        qk, type_scores = self._project(hidden)
        type_scores = type_scores.transpose([0, 2, 1]) / 2  # [batch, 2 * types, seq]
        starts = type_scores[:, : self.num_types].unsqueeze(3)  # [batch, types, seq, 1]
        ends = band_products(None, type_scores[:, self.num_types :].unsqueeze(3), self.max_span_length)
        q, k = qk[..., : self.head_size], qk[..., self.head_size :]
        if self.rotary is not None:
            q, k = self.rotary(q, positions=positions), self.rotary(k, positions=positions)
        q = q * (1.0 / math.sqrt(self.head_size))
        spans = band_products(q, k, self.max_span_length)  # [batch, seq, seq or band]
        return mask_non_spans(spans.unsqueeze(1) + starts + ends, token_mask, self.max_span_length, self.ordered)

    def loss(
        self, hidden: Tensor, spans: Tensor, token_mask: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """As :meth:`GlobalPointer.loss`. The native operator does not store the logits."""
        if is_enabled(hidden, self.dense.weight, token_mask) and spans.shape[0] == hidden.shape[0]:
            (qk, type_scores), rope = self._project(hidden), None
            if self.rotary is not None:
                rope = self.rotary.cos_sin(hidden.shape[1] if positions is None else positions)
            rows, known = sorted_spans(spans, self.num_types, hidden.shape[1], self.max_span_length, self.ordered)
            form = self.max_span_length, self.ordered
            losses = native_span_loss(qk, type_scores, rows, known, rope, token_mask, *form)
            if losses is not None:
                return losses
        return super().loss(hidden, spans, token_mask, positions)

    def _project(self, hidden):
        """q and k ``[batch, seq, 2 * head_size]``; scores of starts and ends ``[batch, seq, 2 * types]``."""
        qk = self.dense(hidden)
        return qk, self.type_scores(qk)


def band_products(q: Tensor | None, k: Tensor, width: int | None) -> Tensor:
    r"""b(i, d) = q_i . k_{i+d}: only the entries (i, i + d) of q k^T, d = 0 .. width - 1, in time and memory linear in
    seq; all of q k^T, ``[..., seq, seq]``, if ``width`` is None.

    A block of queries is multiplied with the keys of the block and the next width - 1 keys. In that product,
    ``[size, size + width - 1]``, the entry (r, r + d) has the flat index r (size + width) + d, so in rows of
    size + width the band is the first ``width`` columns. ``[..., seq, size]`` -> ``[..., seq, width]``, 0 where i + d
    is past the end. Without ``q``, b(i, d) = k_{i+d} for k ``[..., seq, 1]``; if ``width`` is None, ``[..., 1, seq]``.

    >>> q = paddle.to_tensor([[1.0], [2.0], [3.0]])
    >>> band_products(q, q, width=2).tolist(), band_products(None, q, width=2).tolist()
    ([[1.0, 2.0], [4.0, 6.0], [9.0, 0.0]], [[1.0, 2.0], [2.0, 3.0], [3.0, 0.0]])
    """
    if width is None:
        return k.squeeze(-1).unsqueeze(-2) if q is None else paddle.matmul(q, k, transpose_y=True)
    is_known = k.shape[-2] >= 0  # false in some static graphs
    leading, seq = (k.shape[:-1], k.shape[-2]) if is_known else (paddle.shape(k)[:-1], paddle.shape(k)[-2])
    columns = min(width, seq) if is_known else width  # columns that can hold a span
    size = max(1, columns, min(_BLOCK, seq)) if is_known else max(width, _BLOCK)
    blocks = (seq + size - 1) // size

    def in_blocks(x, blocks):
        """``[..., seq, features]`` -> ``[rows, blocks, size, features]``, padded with zeros."""
        x = padded(x.reshape([-1, seq, x.shape[-1]]), 1, after=blocks * size - seq)
        return x.reshape([-1, blocks, size, x.shape[-1]])

    k = in_blocks(k, blocks + 1)
    k = paddle.concat([k[:, :-1], k[:, 1:]], axis=2)[:, :, : size + columns - 1]
    if q is None:  # not a product of ones, which oneDNN in paddle 3.3.1 computes wrongly for vectors of one number
        band = k.transpose([0, 1, 3, 2]).expand([-1, -1, size, -1])
    else:
        band = paddle.matmul(in_blocks(q, blocks), k, transpose_y=True)
    band = padded(band.reshape([-1, blocks, size * (size + columns - 1)]), 2, after=size)
    band = band.reshape([-1, blocks * size, size + columns])[:, :seq, :columns]
    return padded(band, 2, after=width - columns).reshape([*leading, width])
