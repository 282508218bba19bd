"""Feature maps phi that turn softmax attention into linear attention: sim(q, k) = phi(q) . phi(k).

A map is either a function of any shape, the same for queries and keys (:func:`elu_plus_one`, :func:`relu`,
:func:`squared_relu`, :func:`exp`), or an object with

- ``query(x)``: ``[batch, heads, seq, head_dim]`` -> ``[batch, heads, seq, features]``;
- ``key(x, key_mask)``: the same for keys; ``key_mask`` is bool ``[batch, seq]`` or None.

The rotation turns the features: it is made for ``features``, which is ``head_dim`` except where a map says otherwise.
"""

import numpy as np
import paddle
import paddle.nn.functional as F

from paddle_rope.precision import Float32Layer

# At its bound the slope of clip is 1 in paddle 3.x and 0 in 2.6.2: keep the bound off 0.
_JUST_ABOVE_ZERO = 1e-30
# Added to squared lengths, so that the slope of x / |x| is finite at 0.
_SMALLEST_SQUARE = 1e-12
# Exponent of padded keys: exp of it is 0 in float32 and float64 beside any real key.
_MASKED_EXPONENT = -1e30


def elu_plus_one(x):
    """phi(x) = elu(x) + 1: x + 1 for x >= 0, exp(x) below (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7).

    Written as relu(x) + exp(min(x, 0)), which does not cancel: elu(x) + 1 is exactly 0 in bfloat16 for x = -8.
    The slope at 0 is 1.

    Args:
        x: any shape, any floating dtype.

    Returns:
        Tensor of the same shape and dtype, positive.
    """
    return F.relu(x) + paddle.exp(paddle.clip(x, max=_JUST_ABOVE_ZERO))


def relu(x):
    """phi(x) = max(x, 0), not negative; a query or key without a positive feature gets the output or weight 0."""
    return F.relu(x)


def squared_relu(x):
    """phi(x) = max(x, 0)^2, not negative; as :func:`relu`, but smooth at 0 (an activation in arXiv 2109.08668)."""
    return F.relu(x).square()


def exp(x):
    """phi(x) = exp(x), positive. In float32 the products hold while a query and a key feature sum to less than 80."""
    return paddle.exp(x)


class SoftmaxExp:
    r"""phi(q) = softmax over the features, phi(k) = exp(k_j) / sum_j exp(k_j), feature by feature over the sequence.

    Shen et al. 2018, arXiv 1812.01243; kexue.fm 7546. The weights phi(q_i) . phi(k_j) are not negative and sum to 1
    over j as they are: without rotation every normaliser but "none" divides by 1. Each key sees the whole sequence, so
    the map is bidirectional only and does not know packed sequences. (Keys exp(k) alone under a normaliser are
    :func:`exp`: a factor that a query's features share, such as the one of softmax, leaves the quotient unchanged.)
    """

    over_sequence = True

    def query(self, x):
        return F.softmax(x, axis=-1)

    def key(self, x, key_mask=None):
        if key_mask is None:
            return F.softmax(x, axis=2)
        is_key = key_mask.unsqueeze([1, 3])
        is_key.stop_gradient = True  # which the expansion of bool in static graphs insists on
        is_key = is_key.expand(x.shape)
        return F.softmax(paddle.where(is_key, x, paddle.full_like(x, _MASKED_EXPONENT)), axis=2)


class OnePlusCosine:
    r"""sim(q_i, k_j) = 1 + cos(R_i q_i, R_j k_j), in [0, 2]: kexue.fm 7546, eq. (7), and 8265, after eq. (19).

    phi(x) = x / |x|, of the same length after rotation; the 1 is one more feature, which is not rotated. With the
    rotation in numerator and denominator (``normalizer="rotated"``, or "none") attention stays a probability, as long
    as the rotation keeps lengths, which YaRN's does not.
    Lengths are sqrt(|x|^2 + 1e-12): the zero vector has cosine 0 with all.
    """

    rotates_denominator = True

    def query(self, x):
        return x / paddle.sqrt(x.square().sum(axis=-1, keepdim=True) + _SMALLEST_SQUARE)

    def key(self, x, key_mask=None):
        return self.query(x)

    def after_rotation(self, features):
        """``[..., head_dim]`` -> ``[..., head_dim + 1]``: the feature 1."""
        return paddle.concat([features, paddle.ones_like(features[..., :1])], axis=-1)


class OrthogonalRandomFeatures(Float32Layer):
    r"""FAVOR+ (Choromanski et al. 2020, arXiv 2009.14794, lemma 1): sum_w phi_w(q) phi_w(k) estimates exp(q.k/sqrt(d)).

    phi_w(x) = exp(w . y - |y|^2 / 2) with y = x / d^(1/4), for ``num_features`` random vectors w from N(0, I_d): blocks
    of d orthogonal directions, each with the length of an independent Gaussian vector. A factor that all features of
    one query share, and one that all features share, cancel in the quotient: queries have max_w phi_w(q) = 1, and
    1 / num_features is left out. Keys are not rescaled, since causal forms cannot know the largest to come: in float32
    they vanish where |k|^2 / sqrt(d) goes beyond 150.

    The vectors are the buffer ``projection`` float32 ``[num_features, head_dim]``, also in models of half precision,
    and go into the checkpoint.

    Args:
        head_dim: d.
        num_features: number of vectors; None for head_dim. The rotation is made for this size, hence even.
        seed: of the vectors.

    Raises:
        ValueError: a size is not positive.
    """

    def __init__(self, head_dim, num_features=None, seed=0):
        super().__init__()
        num_features = head_dim if num_features is None else num_features
        if head_dim <= 0 or num_features <= 0:
            raise ValueError(f"head_dim and num_features must be positive, got {head_dim} and {num_features}")
        self.head_dim = head_dim
        self.num_features = num_features
        self.register_buffer("projection", paddle.to_tensor(self._draw(seed)))

    def redraw(self, seed):
        """New vectors; the same seed gives the same ones."""
        self.projection.set_value(self._draw(seed))

    def query(self, x):
        exponents = self._project(x)[0]
        return paddle.exp(exponents - exponents.max(axis=-1, keepdim=True).detach())

    def key(self, x, key_mask=None):
        exponents, scaled = self._project(x)
        return paddle.exp(exponents - scaled.square().sum(axis=-1, keepdim=True) / 2)

    def _project(self, x):
        """w . y ``[..., num_features]`` and y."""
        scaled = x * self.head_dim**-0.25
        return paddle.matmul(scaled, self.projection.astype(x.dtype), transpose_y=True), scaled

    def _draw(self, seed):
        random = np.random.default_rng(seed)
        size = self.head_dim
        blocks = []
        for start in range(0, self.num_features, size):
            directions, upper = np.linalg.qr(random.standard_normal((size, size)))
            directions *= np.sign(np.diag(upper))  # uniform over all orthogonal matrices
            blocks.append(directions.T[: self.num_features - start])
        lengths = np.linalg.norm(random.standard_normal((self.num_features, size)), axis=1, keepdims=True)
        return (np.concatenate(blocks) * lengths).astype("float32")


def map_query(feature_map, q):
    """phi(q) ``[batch, heads, seq, features]`` by a function or by an object with ``query``."""
    return feature_map.query(q) if hasattr(feature_map, "query") else feature_map(q)


def map_key(feature_map, k, key_mask):
    """phi(k) ``[batch, heads, seq, features]`` by a function or by an object with ``key``."""
    return feature_map.key(k, key_mask) if hasattr(feature_map, "key") else feature_map(k)


_FUNCTIONS = {"elu_plus_one": elu_plus_one, "relu": relu, "squared_relu": squared_relu, "exp": exp}
FEATURE_MAPS = (*_FUNCTIONS, "softmax_exp", "one_plus_cosine", "favor")


def make_feature_map(name, head_dim, num_random_features=None, seed=0):
    """The feature map that a configuration names, one of :data:`FEATURE_MAPS`.

    Args:
        name: ``"favor"`` is :class:`OrthogonalRandomFeatures`; the others are named like the functions and classes.
        head_dim: size of queries and keys.
        num_random_features, seed: of ``"favor"``.

    Raises:
        ValueError: the name is unknown.
    """
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name == "softmax_exp":
        return SoftmaxExp()
    if name == "one_plus_cosine":
        return OnePlusCosine()
    if name == "favor":
        return OrthogonalRandomFeatures(head_dim, num_random_features, seed)
    raise ValueError(f"feature_map must be one of {', '.join(FEATURE_MAPS)}, got {name!r}")
