"""Rotary position embedding (RoPE).

Sources: Su, https://kexue.fm/archives/8265, eq. (11)-(13); Su et al. 2021, arXiv 2104.09864, eq. (13)-(15), (34).
"""

import numpy as np
import paddle
from paddle import nn


class RotaryPositionEmbedding(nn.Layer):
    r"""Rotates the vector at position m by the angles m * theta_i, so that dot products see relative position only.

    The pair (x_{2i}, x_{2i+1}) is read as the complex number x_{2i} + i x_{2i+1} and multiplied by
    exp(i m theta_i), theta_i = base^(-2i/head_dim). With R_m this (orthogonal) map,
    <R_m q, R_n k> = <q, R_{n-m} k>.

    Phases are computed in float64; cosine and sine are used in float32 (float64 for float64 inputs), also under
    AMP. The table grows on demand: no length is too long, and nothing goes into the checkpoint.

    Args:
        head_dim: size of the last axis of the inputs, even.
        base: the 10000 of the equation; larger bases turn more slowly.

    Raises:
        ValueError: ``head_dim`` is odd or not positive, ``base`` is not positive.
    """

    def __init__(self, head_dim, base=10000.0):
        super().__init__()
        if head_dim <= 0 or head_dim % 2:
            raise ValueError(f"head_dim must be a positive even number (features turn in pairs), got {head_dim}")
        if base <= 0:
            raise ValueError(f"base must be positive, got {base}")
        self.head_dim = head_dim
        self.base = float(base)
        self.theta = self.base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)  # [head_dim / 2]
        self._tables = {}  # (dtype, place) -> complex tensor [length, head_dim / 2]; plain attribute: never saved

    def forward(self, x, offset=0, positions=None, inverse=False):
        """Rotate ``x``.

        Args:
            x: ``[..., seq, head_dim]``, any floating dtype.
            offset: integer position of the first vector; the others follow.
            positions: ``[seq]`` or ``[batch, seq]``, integer or real, instead of ``offset`` + 0, 1, 2, ...;
                with ``[batch, seq]`` the first axis of ``x`` is the batch.
            inverse: rotate by the negative angles, which undoes the rotation.

        Returns:
            Tensor of the shape and dtype of ``x``.

        Raises:
            ValueError: the shapes of ``x``, ``positions`` and ``head_dim`` do not fit, or both ``offset`` and
                ``positions`` are given.
        """
        if x.ndim < 2 or x.shape[-1] != self.head_dim:
            raise ValueError(f"x must be [..., seq, {self.head_dim}], got {list(x.shape)}")
        dtype = "float64" if x.dtype == paddle.float64 else "float32"
        if positions is None:
            rotation = self._table(offset, x.shape[-2], dtype)  # [seq, head_dim / 2]
        elif offset:
            raise ValueError("give either offset or positions, not both")
        else:
            rotation = self._rotation_at(positions, x, dtype)
        if inverse:
            rotation = paddle.conj(rotation)
        pairs = x.astype(dtype).reshape([*x.shape[:-1], self.head_dim // 2, 2])
        rotated = paddle.as_real(paddle.as_complex(pairs) * rotation)  # [..., seq, head_dim / 2, 2]
        return rotated.reshape(x.shape).astype(x.dtype)

    def _table(self, offset, length, dtype):
        """exp(i m theta) for m = offset .. offset + length - 1: complex ``[length, head_dim / 2]``."""
        if offset < 0:
            return self._phases_to_rotation(np.arange(offset, offset + length), dtype)
        end = offset + length
        key = (dtype, str(paddle.get_device()))
        table = self._tables.get(key)
        if table is None or table.shape[0] < end:
            size = max(end, 2 * table.shape[0] if table is not None else 512)
            table = self._phases_to_rotation(np.arange(size), dtype)
            self._tables[key] = table
        return table[offset:end]

    def _phases_to_rotation(self, positions, dtype):
        phases = np.outer(positions.astype(np.float64), self.theta)
        rotation = np.exp(1j * phases).astype("complex128" if dtype == "float64" else "complex64")
        return paddle.to_tensor(rotation)

    def _rotation_at(self, positions, x, dtype):
        """exp(i m theta) at given positions, shaped to broadcast against the pairs of ``x``."""
        if positions.ndim not in (1, 2) or positions.shape[-1] != x.shape[-2]:
            raise ValueError(
                f"positions must be [seq] or [batch, seq] with seq = {x.shape[-2]}, got {list(positions.shape)}"
            )
        phases = positions.astype("float64").unsqueeze(-1) * paddle.to_tensor(self.theta)  # [(batch,) seq, d/2]
        if positions.ndim == 2:
            if x.ndim < 3 or positions.shape[0] not in (1, x.shape[0]):
                raise ValueError(f"positions {list(positions.shape)} do not fit the batch of x {list(x.shape)}")
            phases = phases.reshape([positions.shape[0], *[1] * (x.ndim - 3), *phases.shape[1:]])
        return paddle.complex(paddle.cos(phases).astype(dtype), paddle.sin(phases).astype(dtype))

    def extra_repr(self):
        return f"head_dim={self.head_dim}, base={self.base:g}"
