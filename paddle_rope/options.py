"""Configuration options: their meaning and their range. Does not import paddle.

Values are checked before anything is computed with them, because files can hold anything.
"""

import dataclasses
import difflib
import reprlib
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

ATTENTION_KINDS = ("softmax", "linear", "window")
FEATURE_MAPS = ("elu_plus_one", "relu", "exp", "softmax_exp", "one_plus_cosine", "favor")
OVER_SEQUENCE, ROTATES_DENOMINATOR = ("softmax_exp",), ("one_plus_cosine",)  # of them: attributes of FeatureMap
NORMALIZERS = ("unrotated", "rotated", "none")
# What RoPE rotates: every subset of q, k, v, o in this order; "o" is the inverse rotation of the output.
PLACEMENTS = tuple("".join(letter for bit, letter in enumerate("qkvo") if subset >> bit & 1) for subset in range(1, 16))
# Position embeddings of a model: the tensors that RoPE rotates, or another kind.
POSITION_EMBEDDINGS = (*PLACEMENTS, "sinusoidal", "learned", "alibi", "none")
ROTARY_LAYOUTS = ("interleaved", "half")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "tanh")
POOLINGS = ("first", "mean")
WIDEST_BAND = 2**16  # largest max_span_length of a GlobalPointer; memory grows with it
MOST_CLASSES, MOST_LAYERS = 1_000_000, 1000  # far above any model

_LARGEST = sys.float_info.max
_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 80, 80
shown = _short.repr  # any value, shortened to fit into a line


class Kind:
    """A range of values: ``description`` continues "must be", ``fits`` says whether a value is in the range.

    >>> Kind("an even number", lambda value: value % 2 == 0).check("rotary_dim", 7)
    Traceback (most recent call last):
    ValueError: rotary_dim must be an even number, got 7
    """

    # not a dataclass, which paddle.jit.to_static could not trace
    def __init__(self, description: str, fits: Callable[[Any], bool]) -> None:
        self.description, self.fits = description, fits

    def check(self, name: str, value: object) -> None:
        """Raise ValueError unless ``value``, called ``name``, is of this kind."""
        if not self.fits(value):
            raise ValueError(f"{name} must be {self.description}, got {shown(value)}")


def optional(kind: Kind) -> Kind:
    """A value of a kind, or None."""
    return Kind(f"{kind.description} or None", lambda value: value is None or kind.fits(value))


def integer(least: int, most: int) -> Kind:
    """An integer within bounds; booleans do not count."""

    def fits(value):
        return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most

    return Kind(f"an integer of {least} to {most:,}", fits)


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and -_LARGEST <= value <= _LARGEST  # an integer of hundreds of digits has no float


def number(least: float, most: float) -> Kind:
    """A finite number within bounds; booleans do not count."""
    return Kind(f"a number of {least:g} to {most:g}", lambda value: _is_number(value) and least <= value <= most)


def list_of(kind: Kind, most: int) -> Kind:
    """A list of at most ``most`` values of a kind."""

    def fits(value):
        return isinstance(value, (list, tuple)) and len(value) <= most and all(map(kind.fits, value))

    return Kind(f"a list of at most {most:,}, each {kind.description}", fits)


def choice(*known: Any) -> Kind:
    """One of some names or numbers."""

    def fits(value):
        return isinstance(value, str | int) and not isinstance(value, bool) and value in known

    return Kind(f"one of {', '.join(map(str, known))}", fits)


def either(first: Kind, second: Kind) -> Kind:
    """A value of one of two kinds."""
    return Kind(f"{first.description}, or {second.description}", lambda value: first.fits(value) or second.fits(value))


NORMALIZER, ROTARY_LAYOUT = choice(*NORMALIZERS), choice(*ROTARY_LAYOUTS)
# half of a surrogate pair cannot be written in UTF-8
TEXT = Kind("a text", lambda value: isinstance(value, str) and value == value.encode(errors="ignore").decode())
NAMES = list_of(TEXT, MOST_CLASSES)
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
NUMBER = Kind("a number", _is_number)
POSITIVE = Kind("greater than 0", lambda value: _is_number(value) and value > 0)
NOT_NEGATIVE = Kind("at least 0", lambda value: _is_number(value) and value >= 0)
SHARE = Kind("at least 0 and less than 1", lambda value: _is_number(value) and 0 <= value < 1)
PART = Kind("greater than 0 and at most 1", lambda value: _is_number(value) and 0 < value <= 1)


def did_you_mean(word: str, known: Collection[str], similarity: float = 0.6) -> str:
    """The question "did you mean ...?" with at most three names of ``known`` that have ``word`` among their words, or
    else the most similar name; an empty string if none has this ``similarity`` (0 to 1, difflib's).

    >>> did_you_mean("atention", ["attention", "decay"])
    "did you mean 'attention'?"
    """
    near = sorted(name for name in known if word and f"_{word}_" in f"_{name}_")[:3]
    near = near or difflib.get_close_matches(word[:80], sorted(known), n=1, cutoff=similarity)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def check_feature_map(
    name: str, normalizer: str, whole_sequence: bool, over_sequence: bool, rotates_denominator: bool
) -> None:
    """Raise ValueError if a feature map with these attributes of ``FeatureMap`` contradicts the other options of linear
    attention; ``whole_sequence``: a query attends to all keys of its row."""
    if normalizer == "unrotated" and rotates_denominator:
        raise ValueError(f"{name} is rotated in the denominator as well: set normalizer='rotated'")
    if not whole_sequence and over_sequence:
        raise ValueError(f"{name} looks at the whole sequence: use exp for causal attention and packed texts")


def option(default: Any, help: str, kind: Kind) -> Any:
    """A field of :class:`Options`: its default (copied for each instance), its meaning for help and documents, and its
    range."""
    metadata = {"help": help, "kind": kind}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def check_given(values: Any) -> None:
    """Raise ValueError unless the fields of a dataclass that have a kind are of it; None means not given."""
    for one in dataclasses.fields(values):
        kind, value = one.metadata.get("kind"), getattr(values, one.name)
        if kind is not None and value is not None:
            kind.check(one.name, value)


@dataclass
class Options:
    """Base of dataclasses whose fields are made by :func:`option`; checks the range of each.

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
