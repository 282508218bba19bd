"""The band of short spans: scores of the spans i .. i + d, d = 0 .. width - 1, in time and memory linear in seq."""

import paddle

# Smallest block of queries. Blocks as wide as the band do twice the products that are needed; narrower ones than this
# are slower on CPU.
_BLOCK = 32


def band_products(q, k, width):
    r"""b(i, d) = q_i . k_{i+d}: the entries (i, i + d) of q k^T, d = 0 .. width - 1, without the others.

    A block of queries is multiplied with the keys of the block and the width - 1 keys behind it. In that product,
    ``[size, size + width - 1]``, the entry (r, r + d) is number r (size + width) + d: read with rows of size + width,
    the band is its first ``width`` columns.

    Args:
        q, k: ``[..., seq, size]``.
        width: columns of the band, at least 1.

    Returns:
        ``[..., seq, width]``, 0 where i + d is past the end.

    Raises:
        ValueError: a static graph of unknown length.
    """
    if q.shape[-2] < 0:
        raise ValueError("the band of short spans (max_span_length) needs a known length in static graphs")
    *leading, seq, features = q.shape
    columns = min(width, seq)  # of the others none is a span
    size = max(1, columns, min(_BLOCK, seq))
    blocks = -(-seq // size)
    q = _pad(q, -2, blocks * size - seq).reshape([-1, blocks, size, features])
    k = _pad(k, -2, (blocks + 1) * size - seq).reshape([-1, blocks + 1, size, features])
    k = paddle.concat([k[:, :-1], k[:, 1:]], axis=2)[:, :, : size + columns - 1]
    band = paddle.matmul(q, k, transpose_y=True).reshape([-1, blocks, size * (size + columns - 1)])
    band = _pad(band, -1, size).reshape([-1, blocks * size, size + columns])[:, :seq, :columns]
    return _pad(band, -1, width - columns).reshape([*leading, seq, width])


def band_ends(x, width):
    """b(i, d) = x_{i+d}: ``[..., seq]`` -> ``[..., seq, width]``, 0 past the end."""
    x = x.unsqueeze(-1)
    return band_products(paddle.ones_like(x), x, width)


def _pad(x, axis, count):
    """Zeros behind ``x`` along ``axis``."""
    if count == 0:
        return x
    shape = list(x.shape)
    shape[axis] = count
    return paddle.concat([x, paddle.zeros(shape, dtype=x.dtype)], axis=axis)
