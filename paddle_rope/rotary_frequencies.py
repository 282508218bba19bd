"""Frequencies of rotary position embedding, plain and scaled for texts longer than the training texts.

Sources: Su et al. 2021, arXiv 2104.09864, section 3.2.2; Chen et al. 2023, arXiv 2306.15595 (position interpolation);
Peng et al. 2023, arXiv 2309.00071 (NTK-aware, NTK-by-parts, YaRN).
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from paddle_rope.options import NUMBER, choice


def rotary_frequencies(rotary_dim: int, base: float = 10000.0) -> np.ndarray:
    """theta_i = base^(-2i/rotary_dim), i = 0 .. rotary_dim/2 - 1, float64 (arXiv 2104.09864, section 3.2.2).

    >>> rotary_frequencies(4)
    array([1.  , 0.01])
    """
    check_even("rotary_dim", rotary_dim)
    if not 0 < base < math.inf:
        raise ValueError(f"base must be positive and finite, got {base}")
    return float(base) ** (-np.arange(0, rotary_dim, 2, dtype=np.float64) / rotary_dim)


def check_even(name: str, number: int) -> None:
    """Raise ValueError unless ``number``, called ``name``, is positive and even."""
    if number <= 0 or number % 2:
        raise ValueError(f"{name} must be a positive even number (features turn in pairs), got {number}")


@dataclass(frozen=True)
class FrequencyScaling:
    """Base class of the scalings; use one of the three below.

    ``factor`` s = (target length) / (training length), 1 to 1e6. Rotated vectors are multiplied by ``amplitude``.
    """

    factor: float

    @property
    def amplitude(self) -> float:
        return 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.factor <= 1e6:
            raise ValueError(f"factor must be at least 1, at most 1e6 (length wanted / of training), got {self.factor}")

    def frequencies(self, rotary_dim: int, base: float) -> np.ndarray:
        """The scaled theta: float64 array ``[rotary_dim / 2]``."""
        raise NotImplementedError


@dataclass(frozen=True)
class LinearScaling(FrequencyScaling):
    """Position interpolation: theta'_i = theta_i / s, as if position m were m / s (arXiv 2306.15595, eq. 4).

    >>> LinearScaling(factor=4).frequencies(4, base=10000)
    array([0.25  , 0.0025])
    """

    def frequencies(self, rotary_dim: int, base: float) -> np.ndarray:
        return rotary_frequencies(rotary_dim, base) / self.factor


@dataclass(frozen=True)
class NTKScaling(FrequencyScaling):
    """NTK-aware: base' = base * s^(d/(d-2)), d = rotary_dim, at least 4 (arXiv 2309.00071, eq. 16).

    The highest frequency stays 1, the lowest becomes base^(-(d-2)/d) / s, as with :class:`LinearScaling`.

    >>> NTKScaling(factor=4).frequencies(4, base=10000)
    array([1.    , 0.0025])
    """

    def frequencies(self, rotary_dim: int, base: float) -> np.ndarray:
        if rotary_dim < 4:
            raise ValueError(f"NTKScaling needs a rotary_dim of at least 4, got {rotary_dim}; use LinearScaling")
        return rotary_frequencies(rotary_dim, base * self.factor ** (rotary_dim / (rotary_dim - 2)))


@dataclass(frozen=True)
class YaRNScaling(FrequencyScaling):
    r"""YaRN: fast frequencies are kept, slow ones interpolated, scores sharpened (arXiv 2309.00071, eq. 17-22).

    A frequency makes r_i = original_length * theta_i / (2 pi) turns within the training length.
    gamma_i = (r_i - beta_slow) / (beta_fast - beta_slow), clipped to [0, 1];
    theta'_i = (1 - gamma_i) theta_i / s + gamma_i theta_i.

    The paper divides the scores by a temperature t with sqrt(1/t) = 0.1 ln s + 1: ``amplitude``, which multiplies the
    rotated features of both queries and keys. The ramp is linear in the turns r_i, as the paper defines it; the
    authors' code (jquesnelle/yarn, issue 60) makes it linear in i between two rounded bounds.

    Args:
        factor: s, at least 1.
        original_length: the training length in positions, positive.
        beta_fast: frequencies with at least this many turns are kept; the paper's beta, more than ``beta_slow``.
        beta_slow: frequencies with at most this many turns are interpolated; the paper's alpha, at least 0.

    >>> YaRNScaling(factor=4, original_length=512).frequencies(4, base=10000)  # the fast one stays
    array([1.    , 0.0025])
    """

    original_length: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.original_length) and self.original_length > 0):
            raise ValueError(f"original_length must be positive, the length of training, got {self.original_length}")
        if not 0 <= self.beta_slow < self.beta_fast < math.inf:
            raise ValueError(f"beta_slow must be in [0, beta_fast), got {self.beta_slow} and {self.beta_fast}")

    @property
    def amplitude(self) -> float:
        return 0.1 * math.log(self.factor) + 1.0

    def frequencies(self, rotary_dim: int, base: float) -> np.ndarray:
        theta = rotary_frequencies(rotary_dim, base)
        turns = self.original_length * theta / (2 * math.pi)
        gamma = np.clip((turns - self.beta_slow) / (self.beta_fast - self.beta_slow), 0.0, 1.0)
        return (1 - gamma) * theta / self.factor + gamma * theta


def head_frequencies(
    head_dim: int, base: float, rotary_dim: int | None = None, scaling: FrequencyScaling | None = None
) -> np.ndarray:
    """theta of a head whose first ``rotary_dim`` features turn (None: all ``head_dim``): float64 ``[rotary_dim / 2]``.
    Raises ValueError if ``rotary_dim`` is odd, not positive or above ``head_dim``, or another argument does not fit.

    >>> head_frequencies(8, 10000, rotary_dim=4)
    array([1.  , 0.01])
    """
    rotary_dim = head_dim if rotary_dim is None else rotary_dim
    if rotary_dim > head_dim:
        raise ValueError(f"rotary_dim must be at most head_dim = {head_dim}, got {rotary_dim}")
    return scaling.frequencies(rotary_dim, base) if scaling else rotary_frequencies(rotary_dim, base)


SCALINGS: dict[Any, type[FrequencyScaling]] = {"linear": LinearScaling, "ntk": NTKScaling, "yarn": YaRNScaling}


def frequency_scaling(settings: dict[str, Any] | None) -> FrequencyScaling | None:
    """The scaling of a configuration such as ``{"type": "yarn", "factor": 4, "original_length": 512}``; None for None.
    Raises ValueError if the type (one of :data:`SCALINGS`) or an argument is unknown, missing or out of range.
    """
    if settings is None:
        return None
    arguments = dict(settings)
    kind = arguments.pop("type", None)
    choice(*SCALINGS).check("the type of rotary scaling", kind)
    for name, value in arguments.items():
        NUMBER.check(f"rotary scaling {name}", value)
    try:
        return SCALINGS[kind](**arguments)
    except TypeError:
        names = ", ".join(field.name for field in fields(SCALINGS[kind]))
        raise ValueError(f"rotary scaling {kind!r} takes {names}; got {', '.join(arguments) or 'none'}") from None
