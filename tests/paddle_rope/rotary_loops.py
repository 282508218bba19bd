"""Variants of the rotation, and what the reference gives for them."""

import pytest

from paddle_rope import LinearScaling, NTKScaling, YaRNScaling, reference

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


def expected_of(rotary, x, positions, inverse=False, theta=None):
    """The rotation of the reference, in float64, at the frequencies in use or others."""
    positions, amplitude = (
        ([-one for one in positions], 1 / rotary.amplitude) if inverse else (positions, rotary.amplitude)
    )
    theta = rotary.theta.astype("float64") if theta is None else theta
    return reference.rotate(x.astype("float64"), positions, theta=theta, layout=rotary.layout, amplitude=amplitude)
