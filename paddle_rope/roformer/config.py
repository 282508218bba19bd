"""Configuration of a RoFormer: every option once, with its default, meaning and range."""

import copy
import dataclasses
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from paddle_rope.files import read_json_object, write_json
from paddle_rope.options import (
    ACTIVATIONS,
    ATTENTION_KINDS,
    FEATURE_MAPS,
    MOST_CLASSES,
    MOST_LAYERS,
    NORMALIZER,
    NORMALIZERS,
    OBJECT,
    OVER_SEQUENCE,
    PART,
    PLACEMENTS,
    POOLINGS,
    POSITION_EMBEDDINGS,
    POSITIVE,
    ROTARY_LAYOUT,
    ROTATES_DENOMINATOR,
    SHARE,
    TRUTH,
    Kind,
    Options,
    check_feature_map,
    choice,
    did_you_mean,
    either,
    integer,
    list_of,
    number,
    option,
    optional,
    shown,
)
from paddle_rope.rotary_frequencies import frequency_scaling, head_frequencies

CONFIG_FILE = "config.json"
ENCODERS = Path(__file__).with_name("encoders")  # shipped with the package: one folder each, with a model card
# Far above any model: larger values in a file are refused before memory is allocated.
WIDEST, MOST_ROWS = 2**16, 2**24

_OF_FOLDERS = {"architectures", "model_type"}  # in ``config.json``, besides the options
_ROTARY: dict[str, tuple[Any, Kind]] = {  # keys of ``rotary``, with their defaults and ranges
    "base": (10000, POSITIVE),
    "window_base": (None, optional(POSITIVE)),  # in layers with window attention
    "layout": ("interleaved", ROTARY_LAYOUT),
    "rotary_dim": (None, optional(integer(2, WIDEST))),
    "learned": (False, TRUTH),
    "scaling": (None, optional(OBJECT)),
}
ROTARY_DEFAULTS = {name: default for name, (default, _) in _ROTARY.items()}
NAMED = Kind(
    "an object of names by index",
    lambda value: (
        isinstance(value, dict)
        and all(str(index).isdecimal() and isinstance(name, str | int) for index, name in value.items())
    ),
)
_ALMOST = 0.85  # similarity of a misspelled name


def folder_of(name: str | os.PathLike) -> str | os.PathLike:
    """The folder of a model: ``name`` if it is a folder, otherwise the shipped encoder of this name. Any other name is
    returned unchanged, so that its reader reports the error.
    """
    is_shipped = not os.path.isdir(name) and os.fspath(name) in os.listdir(ENCODERS)
    return ENCODERS / name if is_shipped else name


@dataclass
class RoFormerConfig(Options):
    """Sizes and forms of a RoFormer (arXiv 2104.09864; version 2: kexue.fm 8998).

    The table of docs/reference/configuration-keys.md lists the options; ``RoFormerConfig.help("decay")`` explains one.

    Raises ValueError if an option is out of its range, or options contradict each other.

    >>> config = RoFormerConfig(vocab_size=6000, hidden_size=256, num_attention_heads=4, attention="linear")
    >>> config.head_dim
    64
    """

    vocab_size: int = option(21128, "rows of the token embedding", integer(1, MOST_ROWS))
    hidden_size: int = option(768, "width of the hidden states", integer(1, WIDEST))
    num_hidden_layers: int = option(12, "number of transformer blocks", integer(1, MOST_LAYERS))
    num_attention_heads: int = option(
        12, "attention heads per block; divides `hidden_size` into an even `head_dim`", integer(1, WIDEST)
    )
    intermediate_size: int = option(3072, "inner width of the feed-forward layers", integer(1, 8 * WIDEST))
    embedding_size: int = option(
        None, "columns of the embeddings; empty: `hidden_size`, otherwise a projection follows", integer(1, 8 * WIDEST)
    )
    type_vocab_size: int = option(0, "rows of the token type embedding; 0: none", integer(0, MOST_ROWS))
    version: int = option(1, "1: biases and layer norm; 2: no biases, RMS norm without weight", choice(1, 2))
    hidden_act: str = option(
        "gelu", f"activation of feed-forward layers and language model head: {', '.join(ACTIVATIONS)}",
        choice(*ACTIVATIONS),
    )  # fmt: skip
    attention: str | list[str] = option(
        "softmax",
        "`softmax` (quadratic in length), `linear`, or `window`, softmax over nearby tokens (linear in length); "
        "or one of them per layer",
        either(choice(*ATTENTION_KINDS), list_of(choice(*ATTENTION_KINDS), MOST_LAYERS)),
    )
    attention_window: int = option(
        64, "of `window`: tokens on each side that a token attends to", integer(1, MOST_ROWS)
    )
    causal: bool = option(False, "tokens attend to earlier tokens only", TRUTH)
    position_embedding: str = option(
        "qk",
        "what RoPE rotates, some of `qkvo` in this order (`o`: the output is rotated back, kexue.fm 10862); or "
        "`sinusoidal`, `learned` (512 positions by default), `alibi`, `none`",
        choice(*POSITION_EMBEDDINGS),
    )
    learned_positions: int = option(512, "rows of the table of `learned`: no text is longer", integer(1, MOST_ROWS))
    rotary: dict[str, Any] | None = option(
        None,
        "arguments of RotaryPositionEmbedding: `base`, `layout`, `rotary_dim`, `learned`, and `scaling` as in "
        '`{"type": "ntk", "factor": 4}`; `window_base` is another base, for layers of `window`; empty: its defaults',
        optional(OBJECT),
    )
    share_kv: bool = option(False, "one projection for keys and values", TRUTH)
    num_key_value_heads: int | None = option(
        None,
        "heads of keys and values, each shared by a group of attention heads; empty: `num_attention_heads`",
        optional(integer(1, WIDEST)),
    )
    feature_map: str = option(
        "elu_plus_one", f"feature map of linear attention: {', '.join(FEATURE_MAPS)}", choice(*FEATURE_MAPS)
    )
    normalizer: str = option("unrotated", f"denominator of linear attention: {', '.join(NORMALIZERS)}", NORMALIZER)
    decay: list[float] | None = option(
        None,
        "decay of linear attention: gamma^distance on its terms; empty: none, otherwise one gamma in (0, 1] per head",
        optional(list_of(PART, WIDEST)),
    )
    convolutions: bool = option(
        False, "three short depthwise convolutions over neighboring tokens in each block (arXiv 2405.16605)", TRUTH
    )
    output_gate: bool = option(False, "gate the output of attention by its input", TRUTH)
    hidden_dropout_prob: float = option(0.1, "dropout rate of embeddings and layers", SHARE)
    embedding_dropout_prob: float | None = option(
        None, "dropout rate of embeddings; empty: `hidden_dropout_prob`", optional(SHARE)
    )
    attention_probs_dropout_prob: float = option(0.1, "dropout rate of the weights of softmax and window", SHARE)
    layer_norm_eps: float = option(1e-12, "epsilon of the normalization", number(0, 0.001))
    pad_token_id: int = option(0, "id of padding", integer(0, MOST_ROWS))

    model_type: ClassVar[str] = "paddle_rope_roformer"

    def __post_init__(self) -> None:
        if self.embedding_size is None:
            self.embedding_size = self.hidden_size
        for name in ("attention", "decay"):
            if isinstance(value := getattr(self, name), tuple):
                setattr(self, name, list(value))
        self.rotary = copy.deepcopy(self.rotary)  # the caller may change it
        super().__post_init__()
        self._check_together()

    @classmethod
    def from_dict(cls, settings: dict[str, Any], **changes: Any) -> "RoFormerConfig":
        """A configuration from the settings of a ``config.json``, with ``changes`` to them.

        Options of a classifier, or of another model of this library (``model_type``), are ignored, so that a masked
        language model can start from the folder of an entity model; among the latter, only a name that resembles an
        encoder option is an error.

        Raises ValueError if an option is unknown (the nearest is named) or does not fit.
        """
        cls.check_names(changes)
        kind = str(settings.get("model_type", cls.model_type))
        is_of_others = kind != cls.model_type and kind.startswith("paddle_rope")
        settings = {name: value for name, value in settings.items() if name not in _OF_FOLDERS} | changes
        for name in settings.keys() - cls.names():
            is_foreign = is_of_others and not did_you_mean(name, RoFormerConfig.names(), _ALMOST)
            if is_foreign or name in SequenceClassificationConfig.names():
                del settings[name]
        cls.check_names(settings)
        return cls(**settings)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike, **changes: Any) -> "RoFormerConfig":
        """The configuration in a folder of this library, or of an encoder that comes with the package (``"small"``);
        arguments and errors as in :meth:`from_dict`."""
        return cls.from_dict(read_json_object(Path(folder_of(folder)) / CONFIG_FILE), **changes)

    def save_pretrained(self, folder: str | os.PathLike, architecture: str | None = None) -> None:
        """Write ``config.json`` into ``folder``, which is made if it is missing."""
        written = {"model_type": self.model_type, **dataclasses.asdict(self)}
        if architecture is not None:
            written["architectures"] = [architecture]
        write_json(Path(folder) / CONFIG_FILE, written)

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raise ValueError, with the nearest option, for a name that is not an option."""
        known = cls.names()
        for name in names:
            if name not in known:
                hint = did_you_mean(str(name), known) or f"its options are {', '.join(sorted(known))}"
                raise ValueError(f"{cls.__name__} has no option {shown(name)}; {hint}")

    @property
    def head_dim(self) -> int:
        """Size of a head's queries, keys and values."""
        return self.hidden_size // self.num_attention_heads

    @property
    def layer_attention(self) -> list[str]:
        """``"softmax"``, ``"linear"`` or ``"window"`` for each layer."""
        return [self.attention] * self.num_hidden_layers if isinstance(self.attention, str) else self.attention

    @property
    def has_rotary(self) -> bool:
        """Whether positions are encoded by RoPE."""
        return self.position_embedding in PLACEMENTS

    @property
    def most_tokens(self) -> float:
        """How many tokens a text may have: as many as there are learned positions, otherwise infinitely many."""
        return self.learned_positions if self.position_embedding == "learned" else math.inf

    def _check_together(self):
        heads, listed, phi = self.num_attention_heads, len(self.layer_attention), self.feature_map
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(f"pad_token_id {self.pad_token_id} has no row in a vocab_size of {self.vocab_size}")
        if self.hidden_size % (2 * heads):
            raise ValueError(
                f"hidden_size {self.hidden_size} must be a multiple of {2 * heads}: {heads} heads of even size"
            )
        if heads % (self.num_key_value_heads or 1):
            raise ValueError(
                f"num_key_value_heads {self.num_key_value_heads} does not divide num_attention_heads {heads}"
            )
        if listed != self.num_hidden_layers:
            raise ValueError(f"attention lists {listed} layers, num_hidden_layers is {self.num_hidden_layers}")
        if self.decay is not None and len(self.decay) != heads:
            raise ValueError(f"decay must be {heads} numbers, one for each head, got {self.decay!r}")
        if "linear" in self.layer_attention:
            check_feature_map(
                f"feature_map {phi}", self.normalizer, not self.causal, phi in OVER_SEQUENCE, phi in ROTATES_DENOMINATOR
            )
        if self.position_embedding == "alibi" and {*self.layer_attention} != {"softmax"}:
            raise ValueError("'alibi' is for softmax attention to all tokens; linear attention has decay: exp(-slope)")
        if self.position_embedding == "sinusoidal" and self.embedding_size % 2:
            raise ValueError(f"sinusoidal positions need an even embedding_size, got {self.embedding_size}")
        for name, value in (self.rotary or {}).items():
            choice(*_ROTARY).check("a key of rotary", name)
            _ROTARY[name][1].check(f"rotary {name}", value)
        rotary = {**ROTARY_DEFAULTS, **(self.rotary or {})}
        scaling = frequency_scaling(rotary["scaling"])
        if self.has_rotary:
            for base in filter(None, (rotary["base"], rotary["window_base"])):
                head_frequencies(self.head_dim, base, rotary["rotary_dim"], scaling)
        if scaling and scaling.amplitude != 1 and self.has_rotary and "linear" in self.layer_attention:
            raise ValueError(
                "rotary scaling 'yarn' is for softmax attention; use 'ntk' or 'linear' with linear attention"
            )


@dataclass
class SequenceClassificationConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the options of a text classifier."""

    num_labels: int | None = option(
        None, "number of classes; empty: as many as `id2label` names, or 2", integer(1, MOST_CLASSES)
    )
    id2label: dict[int, str] = option(None, "names of the classes; empty: LABEL_0, LABEL_1, ...", NAMED)
    pooling: str = option("first", "what is classified: the `first` token or the `mean`", choice(*POOLINGS))
    classifier_activation: str = option(
        "tanh", f"activation of the classifier: {', '.join(ACTIVATIONS)}", choice(*ACTIVATIONS)
    )

    def __post_init__(self) -> None:
        if self.id2label is None:
            self.num_labels = 2 if self.num_labels is None else self.num_labels
            self.check_range("num_labels")
            self.id2label = {index: f"LABEL_{index}" for index in range(self.num_labels)}
        self.check_range("id2label")
        self.id2label = {int(index): name for index, name in self.id2label.items()}  # in JSON a key is a string
        self.num_labels = len(self.id2label) if self.num_labels is None else self.num_labels
        super().__post_init__()
        if self.num_labels != len(self.id2label):
            raise ValueError(f"num_labels is {self.num_labels}, but id2label has {len(self.id2label)} names")

    @classmethod
    def from_dict(cls, settings: dict[str, Any], **changes: Any) -> "RoFormerConfig":
        """As :meth:`RoFormerConfig.from_dict`; ``num_labels`` in ``changes`` drops the names in ``settings``."""
        if "num_labels" in changes:
            settings = {name: value for name, value in settings.items() if name != "id2label"}
        return super().from_dict(settings, **changes)
