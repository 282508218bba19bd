"""The loss of the efficient GlobalPointer, which stores none of the scores."""

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.native.attention import fits_rope, rope_arguments
from paddle_rope.native.dispatch import sizes_of
from paddle_rope.native.library import call, dense
from paddle_rope.native.operator import with_gradients


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
    if not fits_rope(rope, batch, seq, head_size) or (len(rows) and rows[-1] >= batch * types):
        return None
    mask = None if token_mask is None else dense(token_mask.astype("bool"))
    if mask is not None and not mask.numpy()[(rows // types)[:, None], spans].all():
        return None
    bounds = np.searchsorted(rows, np.arange(batch * types + 1)).astype(np.int64)
    given = *rope_arguments(rope), mask, bounds, np.ascontiguousarray(spans)
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
