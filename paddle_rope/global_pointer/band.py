"""The band of short spans: scores of the spans i .. i + d, d = 0 .. width - 1, in time and memory linear in seq."""

import paddle
from paddle import Tensor

from paddle_rope.layers import padded

# Smallest block of queries. Blocks as wide as the band do twice the products that are needed; narrower ones than this
# are slower on CPU.
_BLOCK = 32


def band_products(q: Tensor, k: Tensor, width: int) -> Tensor:
    r"""b(i, d) = q_i . k_{i+d}: the entries (i, i + d) of q k^T, d = 0 .. width - 1, without the others.

    A block of queries is multiplied with the keys of the block and the width - 1 keys behind it. In that product,
    ``[size, size + width - 1]``, the entry (r, r + d) is number r (size + width) + d: read with rows of size + width,
    the band is its first ``width`` columns. ``[..., seq, size]`` -> ``[..., seq, width]``, 0 where i + d is past the
    end.

    >>> q = paddle.to_tensor([[1.0], [2.0], [3.0]])
    >>> band_products(q, q, width=2).tolist()
    [[1.0, 2.0], [4.0, 6.0], [9.0, 0.0]]
    """
    return _band(q, k, width)


def band_ends(x: Tensor, width: int) -> Tensor:
    """b(i, d) = x_{i+d}: ``[..., seq]`` -> ``[..., seq, width]``, 0 past the end.

    >>> band_ends(paddle.to_tensor([[1.0, 2.0, 3.0]]), width=2).tolist()
    [[[1.0, 2.0], [2.0, 3.0], [3.0, 0.0]]]
    """
    return _band(None, x.unsqueeze(-1), width)


@paddle.jit.not_to_static  # whose rewriting takes unknown sizes for tensors
def _band(q, k, width):
    """:func:`band_products`; without ``q`` that of ones and k ``[..., seq, 1]``."""
    leading = paddle.shape(k)[:-1] if k.shape[-2] < 0 else k.shape[:-1]
    seq, columns, size = _sizes(k, width)
    blocks = (seq + size - 1) // size
    k = _blocks(k, blocks + 1, size, seq)
    k = paddle.concat([k[:, :-1], k[:, 1:]], axis=2)[:, :, : size + columns - 1]
    if q is None:  # not a product of ones: that of oneDNN in paddle 3.3.1 is wrong for vectors of one number
        band = k.transpose([0, 1, 3, 2]).expand([-1, -1, size, -1])
    else:
        band = paddle.matmul(_blocks(q, blocks, size, seq), k, transpose_y=True)
    band = padded(band.reshape([-1, blocks, size * (size + columns - 1)]), 2, after=size)
    band = band.reshape([-1, blocks * size, size + columns])[:, :seq, :columns]
    return padded(band, 2, after=width - columns).reshape([*leading, width])


def _sizes(x, width):
    """(seq, columns that can hold a span, size of a block) of ``x`` ``[..., seq, size]``; seq is a tensor in static
    graphs that do not know it."""
    seq = x.shape[-2]
    if seq < 0:
        return paddle.shape(x)[-2], width, max(width, _BLOCK)
    columns = min(width, seq)
    return seq, columns, max(1, columns, min(_BLOCK, seq))


def _blocks(x, blocks, size, seq):
    """``[..., seq, features]`` -> ``[rows, blocks, size, features]``, filled up with zeros."""
    features = x.shape[-1]
    x = padded(x.reshape([-1, seq, features]), 1, after=blocks * size - seq)
    return x.reshape([-1, blocks, size, features])
