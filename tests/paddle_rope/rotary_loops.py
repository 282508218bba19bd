"""Rotation by plain loops in float64, and the variants that are compared with it."""

import numpy as np
import paddle
import pytest

from paddle_rope import LinearScaling, NTKScaling, YaRNScaling

VARIANTS = {
    "plain": {},
    "half": {"layout": "half"},
    "partial": {"rotary_dim": 6},
    "half partial": {"layout": "half", "rotary_dim": 6},
    "linear": {"scaling": LinearScaling(3.0)},
    "ntk": {"scaling": NTKScaling(4.5), "layout": "half"},
    "yarn": {"scaling": YaRNScaling(4.0, original_length=300), "rotary_dim": 8},
    "learned": {"learned": True},
    "all": {"layout": "half", "rotary_dim": 8, "scaling": YaRNScaling(2.5, 40), "learned": True, "base": 50.0},
}
HEAD_DIM = 10
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def theta_of(rotary):
    """The frequencies in use, float64; parameters are float32."""
    return rotary.theta.numpy().astype(np.float64) if rotary.learned else rotary.theta


def turn_by_loops(x, positions, theta, layout="interleaved", gain=1.0, inverse=False):
    """``x`` ``[batch, seq, ..., head_dim]`` one vector and pair at a time; ``theta``: numbers or a tensor."""
    pairs = len(theta)
    vectors = []
    for index in range(x.shape[1]):
        features = [x[:, index, ..., feature] for feature in range(x.shape[-1])]
        for i in range(pairs):
            first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + pairs)
            angle = paddle.to_tensor(float(positions[index]), dtype="float64") * theta[i] * (-1 if inverse else 1)
            cosine, sine = gain * paddle.cos(angle), gain * paddle.sin(angle)
            a, b = x[:, index, ..., first], x[:, index, ..., second]
            features[first], features[second] = a * cosine - b * sine, a * sine + b * cosine
        vectors.append(paddle.stack(features, axis=-1))
    return paddle.stack(vectors, axis=1)


def expected_of(rotary, x, positions, inverse=False):
    gain = 1 / rotary.amplitude if inverse else rotary.amplitude
    return turn_by_loops(x.astype("float64"), positions, theta_of(rotary), rotary.layout, gain, inverse)
