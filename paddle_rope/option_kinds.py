"""Options that carry their meaning and range, checked before anything is computed with them: files can hold anything.

This module imports neither paddle nor PaddleNLP.
"""

import dataclasses
import math
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80
shown = _short.repr  # of any value, so that it fits into a line


_LARGEST = sys.float_info.max


class Kind:
    """What a value may be.

    Args:
        description: continues "must be".
        fits: whether a value, None left out, is of the kind.
        optional: whether None is.
    """

    def __init__(self, description: str, fits: Callable[[Any], bool], optional: bool = False) -> None:
        self.description, self.fits, self.optional = description, fits, optional

    def check(self, name: str, value: object) -> None:
        """Raise ValueError unless ``value``, called ``name``, is of this kind."""
        if value is None and self.optional:
            return
        if value is None or not self.fits(value):
            raise ValueError(f"{name} must be {self.description}{' or None' * self.optional}, got {shown(value)}")


def integer(least: int, most: int, optional: bool = False) -> Kind:
    """An integer within bounds, no boolean."""

    def fits(value):
        return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most

    return Kind(f"an integer of {least} to {most:,}", fits, optional)


def number(least: float = -math.inf, most: float = math.inf, optional: bool = False) -> Kind:
    """A finite number within bounds, no boolean."""

    def fits(value):
        # compared first: an integer of hundreds of digits has no float
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and -_LARGEST <= value <= _LARGEST and least <= value <= most

    bounds = f" of {least:g} to {most:g}" if math.isfinite(most) else f" of at least {least:g}"
    return Kind(f"a number{bounds if math.isfinite(least) else ''}", fits, optional)


def share(optional: bool = False) -> Kind:
    """A number of at least 0 and less than 1, such as the rate of a dropout."""
    up_to_one = number(0, 1).fits
    return Kind("a number of at least 0 and less than 1", lambda value: up_to_one(value) and value < 1, optional)


def one_of(description: str, *kinds: type, optional: bool = False) -> Kind:
    """A value of one of some types."""
    return Kind(description, lambda value: isinstance(value, kinds), optional)


def list_of(kind: Kind, most: int, optional: bool = False) -> Kind:
    """A list of values of a kind."""

    def fits(value):
        return isinstance(value, (list, tuple)) and len(value) <= most and all(map(kind.fits, value))

    return Kind(f"a list of at most {most:,}, each {kind.description}", fits, optional)


def choice(*known: Any) -> Kind:
    """One of some names or numbers."""

    def fits(value):
        return isinstance(value, str | int) and not isinstance(value, bool) and value in known

    return Kind(f"one of {', '.join(map(str, known))}", fits)


def either(first: Kind, second: Kind, optional: bool = False) -> Kind:
    """A value of one of two kinds."""
    return Kind(
        f"{first.description}, or {second.description}",
        lambda value: first.fits(value) or second.fits(value),
        optional,
    )


def check_kinds(kinds: Mapping[str, Kind], options: Mapping[str, Any]) -> None:
    """Raise ValueError for the first of the options that is not of its kind; those without a kind are not asked."""
    for name, kind in kinds.items():
        if name in options:
            kind.check(name, options[name])


# half of a surrogate pair cannot be written in UTF-8
TEXT = Kind("a text", lambda value: isinstance(value, str) and value == value.encode(errors="ignore").decode())
TRUTH = one_of("true or false", bool)
MOST_CLASSES, MOST_LAYERS = 1_000_000, 1000  # far above any model
NAMES = list_of(TEXT, MOST_CLASSES)


def option(default: Any, help: str, kind: Kind) -> Any:
    """A field of :class:`Options`: its default, its meaning as help and documents show it, and its range.

    A default that is a list or dict is copied for each instance.
    """
    metadata = {"help": help, "kind": kind}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class Options:
    """Base of dataclasses whose fields are made by :func:`option`; checks the range of each."""

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            self.check_range(one.name)

    def check_range(self, name: str) -> None:
        """Raise ValueError unless the value of an option is in its range."""
        self.__dataclass_fields__[name].metadata["kind"].check(name, getattr(self, name))

    @classmethod
    def names(cls) -> set[str]:
        """The names of the options."""
        return {one.name for one in dataclasses.fields(cls)}

    @classmethod
    def help(cls, name: str) -> str:
        """The meaning of an option."""
        return cls.__dataclass_fields__[name].metadata["help"]

    def to_dict(self) -> dict[str, Any]:
        """The options by name, copied."""
        return dataclasses.asdict(self)
