"""What trained and exported models share: numbers for each type, the size of a text's scores, probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

Numbers = float | Sequence[float]


def check_of_types(name: str, value: Any, types: int, positive: bool = False) -> None:
    """Raise ValueError unless ``value``, under ``name``, is a finite number or a list of one for each type."""
    each = value if isinstance(value, (list, tuple)) else [value] * types
    fits = len(each) == types and all(
        isinstance(one, Real) and not isinstance(one, bool) and math.isfinite(one) and not (positive and one <= 0)
        for one in each
    )
    if not fits:
        kind = "a positive number" if positive else "a number"
        raise ValueError(f"{name} must be {kind} or one for each of {types} types, got {value!r}")


def of_types(value: Numbers, types: int) -> list[float]:
    """A number for each type."""
    return list(value) if isinstance(value, (list, tuple)) else [float(value)] * types


def scores_of_text(config: Any, length: int) -> int:
    """How many scores a text of ``length`` tokens has."""
    return len(config.types) * length * (config.max_span_length or length)


def probability(score: float, temperature: float) -> float:
    """sigmoid(score / temperature)."""
    x = score / temperature
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
