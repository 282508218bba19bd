"""Muon: AdamW, but the matrices of the layers move along orthogonalized momentum."""

import contextlib
import math

import paddle
from paddle import Tensor

from paddle_rope.native.adamw import AdamW
from paddle_rope.native.products import are_rounded, product, rounded

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = 3.4445, -4.775, 2.0315  # of x, x^3 and x^5: singular values of 0.01 to 1 end between 0.7 and 1.2
UPDATE_SIZE = 0.2  # root mean square of an update for a learning rate of 1, about that of AdamW's


def orthogonalized(matrix: Tensor) -> Tensor:
    """A matrix ``[m, n]`` with the same singular vectors, and singular values near 1, by five Newton-Schulz steps
    X <- a X + (b X X^T + c (X X^T)^2) X (https://kellerjordan.github.io/posts/muon).

    >>> abs(float(orthogonalized(paddle.to_tensor([[2.0, 0.0], [0.0, 5.0]]))[0, 1])) < 1e-6
    True
    """
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.t() if is_tall else matrix
    x = x / (x.norm() + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = _product(x, x, transpose_b=True)
        x = a * x + _product(b * gram + c * _product(gram, gram), x)
    return x.t() if is_tall else x


def _product(x, y, transpose_b=False):
    if are_rounded():
        return product(rounded(x), rounded(y), transpose_b=transpose_b)
    return paddle.matmul(x, y, transpose_y=transpose_b)


class Muon(AdamW):
    """The optimizer of K. Jordan (2024), with the step size of arXiv 2502.16982, section 2.2: for a matrix W ``[m, n]``
    with gradient G,

        M <- mu M + G;  W <- (1 - rate decay) W - 0.2 rate sqrt(max(m, n)) orthogonalized(G + mu M).

    ``matrices`` are the names of these parameters; AdamW updates the others, with the same learning rate. Arguments
    otherwise as of AdamW. ``precision`` makes a context for the products.
    """

    def __init__(self, *args, matrices=(), precision=contextlib.nullcontext, **kwargs):
        super().__init__(*args, **kwargs)
        self._matrices, self._precision = {*matrices}, precision

    def _apply_optimize(self, loss, startup_program, params_grads, param_group_idx=0):
        rest = [pair for pair in params_grads if pair[0].name not in self._matrices]
        with self._precision():
            for weight, gradient in params_grads:
                if weight.name in self._matrices:
                    self._move(weight, gradient)
        return super()._apply_optimize(loss, startup_program, rest, param_group_idx)

    def _move(self, weight, gradient):
        self._add_accumulator(self._moment1_acc_str, weight)
        momentum = self._get_accumulator(self._moment1_acc_str, weight)
        momentum.scale_(MOMENTUM).add_(gradient)
        rate = self.get_lr()
        size = UPDATE_SIZE * rate * math.sqrt(max(weight.shape))
        weight.scale_(1 - rate * self._weight_decay).subtract_(orthogonalized(gradient + MOMENTUM * momentum) * size)
