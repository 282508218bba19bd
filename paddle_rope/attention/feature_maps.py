"""Feature maps phi that turn softmax attention into linear attention: sim(q, k) = phi(q) . phi(k).

A feature map is a :class:`FeatureMap` or a function of tensors of any shape, the same for queries and keys. RoPE
rotates the features, so its size is their number, which is ``head_dim`` unless a map says otherwise.
"""

from collections.abc import Callable
from typing import Any, Union

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_rope.backend import Float32Layer, as_factor, scaled
from paddle_rope.options import FEATURE_MAPS, choice

# At its bound the slope of clip is 1 in paddle 3.x and 0 in 2.6.2: keep the bound off 0.
_JUST_ABOVE_ZERO = 1e-30
# Added to squared lengths, so that the slope of x / |x| is finite at 0.
_SMALLEST_SQUARE = 1e-12
# Exponent of padded keys: exp of it is 0 in float32 and float64, compared with any real key.
_MASKED_EXPONENT = -1e30


def elu_plus_one(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1: x + 1 for x >= 0, exp(x) below (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7).

    Any shape and floating dtype -> the same, positive. Written as relu(x) + exp(min(x, 0)), which does not cancel:
    elu(x) + 1 is exactly 0 in bfloat16 for x = -8. The slope at 0 is 1.

    >>> elu_plus_one(paddle.to_tensor([0.0, 2.0])).tolist()
    [1.0, 3.0]
    """
    return F.relu(x) + paddle.exp(paddle.clip(x, max=_JUST_ABOVE_ZERO))


class FeatureMap:
    """A function ``[..., head_dim]`` -> ``[..., features]`` for both queries and keys; base class of maps that treat
    them differently or add features.

    Attributes:
        over_sequence: each key sees the whole sequence, so the map suits neither causal attention nor packed texts.
        rotates_denominator: the products may be negative unless numerator and denominator are rotated alike.
    """

    over_sequence = False
    rotates_denominator = False

    def __init__(self, function: Any = None) -> None:
        self.function = function

    def query(self, x: Tensor) -> Tensor:
        """``[batch, seq, heads, head_dim]`` -> ``[batch, seq, heads, features]``."""
        return self.function(x)

    def key(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """As :meth:`query` for keys; ``key_mask`` bool ``[batch, seq]``, False at padding."""
        return self.query(x)

    def after_rotation(self, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Rotated features joined with the unrotated ones; ``key_mask`` if they are features of keys."""
        return features


FeatureMapLike = Union[FeatureMap, Callable[[Tensor], Tensor]]


def as_feature_map(feature_map: FeatureMapLike) -> FeatureMap:
    """A :class:`FeatureMap`, unchanged or made from a function; anything else, such as a name, raises ValueError."""
    if isinstance(feature_map, FeatureMap):
        return feature_map
    if not callable(feature_map):
        remedy = f"make_feature_map(name, head_dim) makes {', '.join(FEATURE_MAPS)}"
        raise ValueError(f"feature_map must be a function or a FeatureMap, got {feature_map!r}; {remedy}")
    return FeatureMap(feature_map)


class SoftmaxExp(FeatureMap):
    r"""phi(q) = softmax over the features, phi(k) = exp(k_j) / sum_j exp(k_j), feature by feature over the sequence.

    Shen et al. 2018, arXiv 1812.01243; kexue.fm 7546. The weights phi(q_i) . phi(k_j) already sum to 1 over j, so
    without rotation every normalizer except "none" divides by 1.

    >>> SoftmaxExp().key(paddle.zeros([1, 2, 1, 1])).flatten().tolist()  # over the two keys
    [0.5, 0.5]
    """

    over_sequence = True

    def query(self, x: Tensor) -> Tensor:
        return F.softmax(x, axis=-1)

    def key(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        if key_mask is None:
            return F.softmax(x, axis=1)
        is_key = key_mask.unsqueeze([2, 3])
        is_key.stop_gradient = True  # required to expand a bool in static graphs
        return F.softmax(paddle.where(is_key.expand_as(x), x, paddle.full_like(x, _MASKED_EXPONENT)), axis=1)


class OnePlusCosine(FeatureMap):
    r"""sim(q_i, k_j) = 1 + cos(R_i q_i, R_j k_j), in [0, 2]: kexue.fm 7546, eq. (7), and 8265, after eq. (19).

    phi(x) = x / |x|, of the same length after rotation; the 1 is an additional feature that is not rotated. With the
    rotation in numerator and denominator (``normalizer="rotated"``, or "none") attention stays a probability if the
    rotation preserves lengths, which YaRN's does not. Lengths are sqrt(|x|^2 + 1e-12).

    >>> OnePlusCosine().query(paddle.to_tensor([[0.0, 4.0]])).tolist()
    [[0.0, 1.0]]
    """

    rotates_denominator = True

    def query(self, x: Tensor) -> Tensor:
        return x / paddle.sqrt(x.square().sum(axis=-1, keepdim=True) + _SMALLEST_SQUARE)

    def after_rotation(self, features: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """``[..., head_dim]`` -> ``[..., head_dim + 1]``: the feature 1, but 0 at masked keys."""
        one = paddle.ones_like(features[..., :1])
        if key_mask is not None:
            one = scaled(one, as_factor(key_mask, 4, one.dtype))
        return paddle.concat([features, one], axis=-1)


class OrthogonalRandomFeatures(Float32Layer, FeatureMap):
    r"""FAVOR+ (Choromanski et al. 2020, arXiv 2009.14794, lemma 1): sum_w phi_w(q) phi_w(k) estimates exp(q.k/sqrt(d)).

    phi_w(x) = exp(w . y - |y|^2 / 2) with y = x / d^(1/4), d = ``head_dim``, for ``num_features`` (d by default, even
    for the rotation) random vectors w from N(0, I_d): blocks of d orthogonal directions, each with the length of an
    independent Gaussian vector. Factors shared by all features of a query, or by all features, cancel in the quotient:
    queries are scaled to max_w phi_w(q) = 1, and 1 / num_features is omitted. Keys are not rescaled, because causal
    forms cannot know the largest later key: in float32 they vanish where |k|^2 / sqrt(d) exceeds 150.

    The vectors are the float32 buffer ``projection`` ``[num_features, head_dim]``, which is saved in checkpoints.

    >>> tuple(OrthogonalRandomFeatures(head_dim=4, num_features=6).query(paddle.ones([1, 5, 2, 4])).shape)
    (1, 5, 2, 6)
    """

    def __init__(self, head_dim: int, num_features: int | None = None, seed: int = 0) -> None:
        super().__init__()
        num_features = head_dim if num_features is None else num_features
        if head_dim <= 0 or num_features <= 0:
            raise ValueError(f"head_dim and num_features must be positive, got {head_dim} and {num_features}")
        self.head_dim = head_dim
        self.register_buffer("projection", paddle.to_tensor(_orthogonal_vectors(num_features, head_dim, seed)))

    def query(self, x: Tensor) -> Tensor:
        exponents = self._project(x)[0]
        return paddle.exp(exponents - exponents.max(axis=-1, keepdim=True))

    def key(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        exponents, scaled = self._project(x)
        return paddle.exp(exponents - scaled.square().sum(axis=-1, keepdim=True) / 2)

    def _project(self, x):
        """w . y ``[..., num_features]`` and y."""
        scaled = x * self.head_dim**-0.25
        return paddle.matmul(scaled, self.projection.astype(x.dtype), transpose_y=True), scaled


def _orthogonal_vectors(count, size, seed):
    """Blocks of orthogonal directions with the lengths of Gaussian vectors: float32 array ``[count, size]``."""
    random = np.random.default_rng(seed)
    blocks = []
    for start in range(0, count, size):
        directions, upper = np.linalg.qr(random.standard_normal((size, size)))
        directions *= np.sign(np.diag(upper))  # uniform over all orthogonal matrices
        blocks.append(directions.T[: count - start])
    lengths = np.linalg.norm(random.standard_normal((count, size)), axis=1, keepdims=True)
    return (np.concatenate(blocks) * lengths).astype("float32")


def make_feature_map(name: str, head_dim: int, seed: int = 0) -> FeatureMapLike:
    """The feature map of a name in :data:`~paddle_rope.options.FEATURE_MAPS`; other names raise ValueError. ``"favor"``
    is :class:`OrthogonalRandomFeatures` with ``head_dim`` and ``seed``. With ``"relu"`` a query without a positive
    feature gets the output 0, such a key the weight 0; with ``"exp"`` the products are finite in float32 while a query
    and a key feature sum to less than 80.

    >>> make_feature_map("relu", 2)(paddle.to_tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    choice(*FEATURE_MAPS).check("feature_map", name)
    if name == "favor":
        return OrthogonalRandomFeatures(head_dim, seed=seed)
    maps: dict[str, FeatureMapLike] = {"softmax_exp": SoftmaxExp(), "one_plus_cosine": OnePlusCosine()}
    return {**maps, "elu_plus_one": elu_plus_one, "relu": F.relu, "exp": paddle.exp}[name]
