"""The native forms of :mod:`paddle_rope.layers`, of attention and of the loss of the efficient GlobalPointer.

They take the arguments of the plain forms and return None for unsupported shapes or options. Softmax attention stores
no weights ``[seq, seq]``, linear attention stores its inputs and output, the loss stores no scores.
"""

import numpy as np
import paddle
from paddle import Tensor

from paddle_rope.native.dispatch import are_on_cpu, sizes_of, untraced, with_gradients
from paddle_rope.native.library import call, contiguous, dropout_arguments
from paddle_rope.native.products import are_rounded, product, rounded, rows_and_width, to_be_rounded
from paddle_rope.options import ACTIVATIONS, ROTARY_LAYOUT

_QKV = "batch seq heads dim"
_STATES = {("unrotated", False), ("none", True)}  # normalizers, and whether their states lack the sum of the keys
_BY_OUTPUT = ("relu", "tanh")  # activations whose derivative is computed from the output


def native_linear(x, weight, bias, activation):
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[0] or activation not in (None, *ACTIVATIONS):
        return None
    if bias is not None and bias.shape != weight.shape[1:]:
        return None
    (rows, _), width = rows_and_width(x), weight.shape[1]

    def compute(needs, x, weight, bias):
        is_rounded = are_rounded()
        factors = (rounded(x), rounded(weight)) if is_rounded else (x, weight)
        sums = product(*factors)
        y = sums
        if activation not in (None, *_BY_OUTPUT) and any(needs):
            y = paddle.empty_like(sums)
        if activation or bias is not None:
            call("activation_forward", rows, width, activation, sums, bias, y, to_be_rounded(y) if activation else None)
        kept = sums.detach() if activation else None

        def differentiate(grad_output):
            grad_sums, grad_bias = grad_output, paddle.empty([width], grad_output.dtype) if needs[2] else None
            if activation or is_rounded:
                grad_sums = paddle.empty(grad_output.shape, "bfloat16" if is_rounded else "float32")
            if activation or is_rounded or needs[2]:
                new = grad_sums if activation or is_rounded else None
                into = (None, grad_bias, new) if is_rounded else (new, grad_bias, None)
                call("activation_backward", rows, width, activation, kept, grad_output, *into)
            grad_x = product(grad_sums, factors[1], transpose_b=True) if needs[0] else None
            grad_weight = product(factors[0], grad_sums, transpose_a=True) if needs[1] else None
            return grad_x, grad_weight, grad_bias

        return y, differentiate, (*factors, kept)

    return with_gradients(compute, x, weight, bias)


def native_residual_norm(residual, x, weight, bias, epsilon, p):
    if not 0 <= p < 1 or (residual is not None and residual.shape != x.shape) or (weight is None) != (bias is None):
        return None
    if weight is not None and not weight.shape == bias.shape == x.shape[-1:]:
        return None
    rows, width = rows_and_width(x)
    centered, dropout = int(weight is not None), dropout_arguments(p)

    def compute(needs, residual, x, weight, bias):
        y, normalized, deviations = paddle.empty_like(x), None, None
        if any(needs):
            normalized, deviations = paddle.empty_like(x), paddle.empty([rows], x.dtype)
        given = (residual, x, weight, bias, centered, float(epsilon), *dropout)
        call("residual_norm_forward", rows, width, *given, y, to_be_rounded(y), normalized, deviations)

        def differentiate(grad_output):
            grad_residual, grad_x = (paddle.empty_like(grad_output) if needed else None for needed in needs[:2])
            # both or neither
            grad_weight, grad_bias = (paddle.empty_like(weight) if any(needs[2:]) else None for _ in range(2))
            gradients = grad_residual, grad_x, grad_weight, grad_bias
            known = (grad_output, weight, centered, *dropout, normalized, deviations)
            call("residual_norm_backward", rows, width, *known, *gradients)
            return gradients

        return y, differentiate, (normalized, deviations, weight)

    return with_gradients(compute, residual, x, weight, bias)


def native_dropout(x, p):
    if not 0 < p < 1:
        return None
    (rows, width), dropout = rows_and_width(x), dropout_arguments(p)

    def masked(x):
        y = paddle.empty_like(x)
        call("dropout", rows, width, x, *dropout, y)
        return y

    return with_gradients(lambda needs, x: (masked(x), lambda grad_output: (masked(grad_output),), ()), x)


def native_convolution(x, weight, key_mask, segment_ids, causal):
    sizes = _masked_sizes(key_mask, segment_ids, (x, "batch seq hidden"), (weight, "size hidden"))
    if sizes is None or (sizes["size"] % 2 == 0 and not causal):
        return None
    before = sizes["size"] - 1 if causal else sizes["size"] // 2
    masks = contiguous(key_mask), None if segment_ids is None else contiguous(segment_ids.astype("int64"))
    arguments = (*x.shape, sizes["size"], before, *masks)

    def compute(needs, x, weight):
        y = paddle.empty_like(x)
        call("convolution_forward", *arguments, x, weight, y)

        def differentiate(grad_output):
            gradients = [paddle.empty_like(one) if needed else None for one, needed in zip((x, weight), needs)]
            call("convolution_backward", *arguments, x, weight, grad_output, *gradients)
            return gradients

        return y, differentiate, (x, weight, *masks)

    return with_gradients(compute, x, weight)


def _masked_sizes(key_mask, segment_ids, *expected):
    """:func:`sizes_of` of tensors and of the masks of their tokens."""
    masks = (key_mask, "batch seq", paddle.bool), (segment_ids, "batch seq", paddle.int32, paddle.int64)
    return sizes_of(*expected, *masks)


def native_softmax_attention(q, k, v, rope, key_mask, dropout, segment_ids, causal, cu_seqlens):
    """The output, 0 for a text of padding only; ``cu_seqlens`` is unused, since ``segment_ids`` say the same."""
    sizes = _masked_sizes(key_mask, segment_ids, (q, _QKV), (k, _QKV), (v, _QKV))
    if sizes is None or not 0 <= dropout < 1 or not _fits_rope(rope, q.shape[0], q.shape[1], q.shape[3]):
        return None
    masks = contiguous(key_mask), None if segment_ids is None else contiguous(segment_ids.astype("int64"))
    arguments = (*q.shape, *_rope_arguments(rope), *masks, int(causal), *dropout_arguments(dropout), int(are_rounded()))
    return _operator("softmax_attention", arguments, masks, [q, k, v], q.shape, [q.shape[0], q.shape[2], q.shape[1]])


def native_linear_attention(q, k, v, rope, key_mask, normalizer, causal, decay, *, bounds):
    """``bounds``: of the denominator; its second one, as a share; what is added to a mean square."""
    sizes = _masked_sizes(key_mask, None, (q, _QKV), (k, _QKV), (v, _QKV))
    if sizes is None or not _fits_rope(rope, q.shape[0], q.shape[1], q.shape[3]):
        return None
    if normalizer not in ("unrotated", "none") or not _fits_decay(decay, sizes["heads"]):
        return None
    mask, gammas = contiguous(key_mask), None if decay is None else paddle.to_tensor(list(decay), dtype="float32")
    divides = int(normalizer == "unrotated")
    arguments = (*q.shape, *_rope_arguments(rope), mask, int(causal), gammas, divides, *bounds)
    batch, seq, heads, dim = q.shape
    kept_shapes = q.shape, [batch, heads, seq], [batch, heads, dim + 1, dim]
    return _operator("linear_attention", arguments, [mask], [q, k, v], *kept_shapes)


def native_linear_attention_step(state, q, k, v, rope, key_mask, normalizer, decay, *, bounds):
    """For one token after others, without gradients; ``bounds`` as above."""
    if state is None or paddle.is_grad_enabled() or (normalizer, state.keys is None) not in _STATES:
        return None
    key_values, keys, length = state
    states = (key_values, "batch heads dim dim", paddle.float32), (keys, "batch heads dim seq", paddle.float32)
    sizes = _masked_sizes(key_mask, None, *((x, _QKV, paddle.float32) for x in (q, k, v)), *states)
    if sizes is None or sizes["seq"] != 1 or not are_on_cpu(*(x for x in state if isinstance(x, Tensor))):
        return None
    if not _fits_rope(rope, q.shape[0], 1, q.shape[3]) or not _fits_decay(decay, sizes["heads"]):
        return None
    gammas = None if decay is None else np.array(decay, dtype=np.float32)
    given = [contiguous(x) for x in (q, k, v, key_values, keys)]
    y, *next_state = (None if x is None else paddle.empty_like(x) for x in (v, key_values, keys))
    shape = (sizes[name] for name in ("batch", "heads", "dim"))
    arguments = (*shape, *_rope_arguments(rope), contiguous(key_mask), gammas, *bounds)
    call("linear_attention_step", *arguments, *given, y, *next_state)
    return type(state)(*next_state, length + 1), y


def _operator(name, arguments, masks, inputs, *kept_shapes, output=lambda kept: kept[0]):
    """The output of an operator, made from the tensors of shapes ``kept_shapes`` that it fills and backward reads.
    Forward and backward are one C++ function, which goes backward if it is given a gradient of the output.
    """

    def compute(needs, *inputs):
        kept = [paddle.empty(shape, "float32") for shape in kept_shapes]
        saved = (*inputs, *(one.detach() for one in kept))
        call(name, *arguments, *saved, *[None] * (1 + len(inputs)))

        def differentiate(grad_output):
            gradients = [paddle.empty_like(one) for one in inputs]
            call(name, *arguments, *saved, grad_output, *gradients)
            return gradients

        return output(kept), differentiate, (*saved, *masks)

    return with_gradients(compute, *inputs)


@untraced
def native_span_loss(qk, type_scores, rows, spans, rope, token_mask, max_span_length, ordered):
    """The loss of :class:`~paddle_rope.EfficientGlobalPointer` from its projections, float32 ``[batch, types]``; None
    also if a positive starts or ends at a masked token.

    ``qk`` is ``[batch, seq, 2 * head_size]``, q and k side by side; ``type_scores`` ``[batch, seq, 2 * types]``, of
    starts and of ends, not yet halved; ``rows`` and ``spans`` are from
    :func:`~paddle_rope.global_pointer.losses.sorted_spans`; the other arguments are the head's.
    """
    sizes = sizes_of((qk, "batch seq qk"), (type_scores, "batch seq types"), (token_mask, "batch seq", paddle.bool))
    if sizes is None or sizes["qk"] % 2 or sizes["types"] % 2:
        return None
    batch, seq, types, head_size = sizes["batch"], sizes["seq"], sizes["types"] // 2, sizes["qk"] // 2
    if not _fits_rope(rope, batch, seq, head_size) or (len(rows) and rows[-1] >= batch * types):
        return None
    mask = contiguous(token_mask)
    if mask is not None and not mask.numpy()[(rows // types)[:, None], spans].all():
        return None
    bounds = np.searchsorted(rows, np.arange(batch * types + 1)).astype(np.int64)
    given = *_rope_arguments(rope), mask, bounds, np.ascontiguousarray(spans)
    arguments = batch, seq, types, head_size, max_span_length or seq, int(ordered), *given
    kept_shapes = [batch, types], [batch, types]  # of the negatives and of the positives
    return _operator("span_loss", arguments, [mask], [qk, type_scores], *kept_shapes, output=sum)


def _fits_rope(rope, batch, seq, head_dim):
    """Whether these are constant float32 tables on CPU that turn all features of ``[batch, seq, .., head_dim]``, or
    None."""
    if rope is None:
        return True
    if not hasattr(rope, "cos"):
        return False  # the plain form refuses it
    cos, sin, *_ = rope
    if cos.shape != sin.shape or cos.shape[-2:] != [seq, head_dim // 2] or not cos.dtype == sin.dtype == paddle.float32:
        return False
    if not are_on_cpu(cos, sin):
        return False
    return head_dim % 2 == 0 and cos.stop_gradient and sin.stop_gradient and cos.shape[:-2] in ([], [1], [batch])


def _rope_arguments(rope):
    """cos, sin, the stride from text to text, and whether pairs are interleaved, as in kernels.h."""
    if rope is None:
        return None, None, 0, 0
    cos, sin, layout = rope
    ROTARY_LAYOUT.check("layout", layout)
    each = cos.ndim == 3 and cos.shape[0] > 1
    return contiguous(cos), contiguous(sin), cos.shape[-2] * cos.shape[-1] if each else 0, int(layout == "interleaved")


def _fits_decay(decay, heads):
    """Whether ``decay`` is None or a list of one number in (0, 1] per head; a trained decay has no native form."""
    if decay is None:
        return True
    return isinstance(decay, (list, tuple)) and len(decay) == heads and all(0 < gamma <= 1 for gamma in decay)
