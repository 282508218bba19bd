"""Options with their meaning and range: names that can be chosen, kinds of values, and fields of configurations.

Values are checked before anything is computed with them, because files can hold anything. Without paddle.
"""

import dataclasses
import math
import reprlib
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

ATTENTION_KINDS = ("softmax", "linear", "window")
FEATURE_MAPS = ("elu_plus_one", "relu", "exp", "softmax_exp", "one_plus_cosine", "favor")
NORMALIZERS = ("unrotated", "rotated", "none")
# What RoPE rotates: every subset of q, k, v, o in this order; "o" is the inverse rotation of the output.
PLACEMENTS = tuple("".join(letter for bit, letter in enumerate("qkvo") if subset >> bit & 1) for subset in range(1, 16))
# How a model knows positions: the tensors that RoPE rotates, or another embedding.
POSITION_EMBEDDINGS = (*PLACEMENTS, "sinusoidal", "learned", "alibi", "none")
ROTARY_LAYOUTS = ("interleaved", "half")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "tanh")
POOLINGS = ("first", "mean")
WIDEST_BAND = 2**16  # longest span of a GlobalPointer in a band, whose memory counts each length
MOST_CLASSES, MOST_LAYERS = 1_000_000, 1000  # far above any model

_LARGEST = sys.float_info.max
_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80
shown = _short.repr  # of any value, so that it fits into a line


class Kind:
    """A range of values.

    Args:
        description: continues "must be".
        fits: whether a value other than None is of the kind.
        optional: whether None is.

    Example:
        >>> Kind("an even number", lambda value: value % 2 == 0).check("rotary_dim", 7)
        Traceback (most recent call last):
        ValueError: rotary_dim must be an even number, got 7
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
    """An integer within bounds, no boolean.

    >>> integer(1, 1000).description
    'an integer of 1 to 1,000'
    """

    def fits(value):
        return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most

    return Kind(f"an integer of {least} to {most:,}", fits, optional)


def number(least: float = -math.inf, most: float = math.inf, optional: bool = False) -> Kind:
    """A finite number within bounds, no boolean.

    >>> number(0).fits(float("nan"))
    False
    """

    def fits(value):
        # compared first: an integer of hundreds of digits has no float
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return is_number and -_LARGEST <= value <= _LARGEST and least <= value <= most

    bounds = f" of {least:g} to {most:g}" if math.isfinite(most) else f" of at least {least:g}"
    return Kind(f"a number{bounds if math.isfinite(least) else ''}", fits, optional)


def share(optional: bool = False) -> Kind:
    """A number of at least 0 and less than 1, such as the rate of a dropout.

    >>> share().fits(1.0)
    False
    """
    up_to_one = number(0, 1).fits
    return Kind("a number of at least 0 and less than 1", lambda value: up_to_one(value) and value < 1, optional)


def one_of(description: str, *kinds: type, optional: bool = False) -> Kind:
    """A value of one of some types.

    >>> one_of("an object", dict).fits({"base": 10000})
    True
    """
    return Kind(description, lambda value: isinstance(value, kinds), optional)


def list_of(kind: Kind, most: int, optional: bool = False) -> Kind:
    """A list of at most ``most`` values of a kind.

    >>> list_of(number(), 2).fits([0.5, 1])
    True
    """

    def fits(value):
        return isinstance(value, (list, tuple)) and len(value) <= most and all(map(kind.fits, value))

    return Kind(f"a list of at most {most:,}, each {kind.description}", fits, optional)


def choice(*known: Any) -> Kind:
    """One of some names or numbers.

    >>> choice(1, 2).description
    'one of 1, 2'
    """

    def fits(value):
        return isinstance(value, str | int) and not isinstance(value, bool) and value in known

    return Kind(f"one of {', '.join(map(str, known))}", fits)


def either(first: Kind, second: Kind, optional: bool = False) -> Kind:
    """A value of one of two kinds.

    >>> either(choice("softmax"), list_of(choice("softmax"), 12)).fits(["softmax"])
    True
    """
    return Kind(
        f"{first.description}, or {second.description}",
        lambda value: first.fits(value) or second.fits(value),
        optional,
    )


def check_choice(name: str, value: object, known: Collection) -> None:
    """Raise ValueError unless ``value``, called ``name`` in the message, is one of the ``known``.

    >>> check_choice("normalizer", "sum", NORMALIZERS)
    Traceback (most recent call last):
    ValueError: normalizer must be one of unrotated, rotated, none, got 'sum'
    """
    choice(*known).check(name, value)


# half of a surrogate pair cannot be written in UTF-8
TEXT = Kind("a text", lambda value: isinstance(value, str) and value == value.encode(errors="ignore").decode())
TRUTH = one_of("true or false", bool)
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
    """Base of dataclasses whose fields are made by :func:`option`; checks the range of each.

    Example:
        >>> @dataclass
        ... class Sizes(Options):
        ...     layers: int = option(12, "number of layers", integer(1, 1000))
        >>> Sizes(layers=0)
        Traceback (most recent call last):
        ValueError: layers must be an integer of 1 to 1,000, got 0
    """

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
