"""Configuration of a RoFormer."""

import difflib
import functools
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Self

from paddlenlp.transformers import PretrainedConfig

from paddle_rope import choices
from paddle_rope.convolution import check_convolutions
from paddle_rope.option_kinds import (
    MOST_CLASSES,
    MOST_LAYERS,
    TEXT,
    TRUTH,
    Kind,
    check_kinds,
    either,
    integer,
    list_of,
    number,
    one_of,
    share,
    shown,
)
from paddle_rope.removed import OPTIONS as REMOVED
from paddle_rope.removed import without_removed
from paddle_rope.rotary_frequencies import frequency_scaling

_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"),
    *("intermediate_size", "embedding_size"),
)
# What PaddleNLP's configurations take, beside their attributes.
_PADDLENLP_OPTIONS = ("model_type", "num_labels", "num_classes", "name_or_path", "torch_dtype")
# What Hugging Face's transformers write into a file besides.
_WRITTEN_BY_LIBRARIES = ("transformers_version", "_name_or_path")
_ALMOST = 0.85  # similarity, by difflib, of a misspelled name


# Far above any model: a file that asks for more is refused before memory is taken.
WIDEST, MOST_ROWS = 2**16, 2**24
_KINDS = {
    **dict.fromkeys(("vocab_size", "type_vocab_size"), integer(0, MOST_ROWS)),
    **dict.fromkeys(("hidden_size", "num_attention_heads"), integer(-WIDEST, WIDEST)),
    **dict.fromkeys(("embedding_size", "intermediate_size"), integer(-WIDEST, 8 * WIDEST)),
    "num_hidden_layers": integer(0, MOST_LAYERS),
    "version": integer(0, 9),
    "attention": either(TEXT, list_of(TEXT, MOST_LAYERS)),
    "attention_window": integer(0, MOST_ROWS),
    "max_position_embeddings": integer(0, MOST_ROWS, optional=True),
    "rotary_base": number(0),
    "rotary_dim": integer(0, WIDEST, optional=True),
    "rotary_scaling": one_of("an object", dict, optional=True),
    "num_random_features": integer(1, 2**12, optional=True),
    "decay": list_of(number(), WIDEST, optional=True),
    **dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), share()),
    "embedding_dropout_prob": share(optional=True),
    "initializer_range": number(0, optional=True),
    "layer_norm_eps": number(0, 0.001),  # what Paddle's layer_norm takes
    "pad_token_id": integer(0, MOST_ROWS),
    **dict.fromkeys(("causal", "rotary_learned", "share_kv", "convolutions", "output_gate"), TRUTH),
}
_DTYPES = ("float16", "bfloat16", "float32", "float64")
_PADDLENLP_KINDS = {
    **dict.fromkeys(("num_labels", "num_classes"), integer(0, MOST_CLASSES, optional=True)),
    **dict.fromkeys(("id2label", "label2id"), one_of("an object", dict, optional=True)),
    **dict.fromkeys(
        ("dtype", "torch_dtype"), Kind(f"one of {', '.join(_DTYPES)}", lambda value: value in _DTYPES, optional=True)
    ),
}


class RoFormerConfig(PretrainedConfig):
    """Sizes and forms of a RoFormer (arXiv 2104.09864; version 2: kexue.fm 8998).

    With RoPE there is no longest position; ``max_position_embeddings`` is for ``"learned"`` alone.

    Args:
        vocab_size: rows of the token embedding.
        hidden_size: size of the hidden states.
        num_hidden_layers: transformer blocks.
        num_attention_heads: heads a block; divides ``hidden_size`` into an even ``head_dim``.
        intermediate_size: inner size of the feed-forward layers.
        embedding_size: columns of the embeddings; None for ``hidden_size``, otherwise a projection leads to it.
        type_vocab_size: rows of the token type embedding; 0 for none.
        version: 1, with biases and layer norm, or 2, without biases and with RMS norm without weight.
        hidden_act: ``"gelu"`` (exact), ``"gelu_tanh"``, ``"relu"`` or ``"tanh"``, of feed-forward and language model
            head.
        attention: ``"softmax"`` (quadratic in length), ``"linear"``, or ``"window"``, softmax attention to the tokens
            near by (linear in length); a list gives one of them for each layer.
        attention_window: of ``"window"``: token i sees token j where |i - j| is at most this, and with ``causal`` j is
            not behind i.
        causal: no token sees a later one.
        position_embedding: where RoPE rotates, some of the letters ``qkvo`` in this order (``"o"``: the output is
            rotated back; kexue.fm 10862; ``"qkv"`` is what others call rotary_value); or ``"sinusoidal"``,
            ``"learned"``, ``"alibi"``, ``"none"``.
        max_position_embeddings: positions of ``"learned"``.
        rotary_base: base of RoPE.
        rotary_layout: ``"interleaved"`` or ``"half"``.
        rotary_dim: the first features of a head that turn; None for all.
        rotary_scaling: for texts longer than those of training, e.g. ``{"type": "ntk", "factor": 4}``
            (:func:`~paddle_rope.rotary_frequencies.frequency_scaling`); None for none.
        rotary_learned: train the frequencies.
        share_kv: one projection for keys and values.
        feature_map: phi of linear attention: ``"elu_plus_one"``, ``"relu"``, ``"exp"``,
            ``"softmax_exp"``, ``"one_plus_cosine"`` or ``"favor"``.
        num_random_features: of ``"favor"``; None for ``head_dim``.
        normalizer: of linear attention: ``"unrotated"``, ``"rotated"`` or ``"none"``.
        decay: of linear attention, a number gamma in (0, 1] for each head: numerator and denominator have the factor
            gamma^|i-j|; None for none.
        convolutions: three short depthwise convolutions over neighboring tokens in each block (MILA, arXiv 2405.16605),
            c being a :class:`~paddle_rope.convolution.DepthwiseConvolution`: x + c(x) replaces the block's input x, the
            values are SiLU(c(W_v x)), and attended + c(values) is the output. Not with ``causal``.
        output_gate: gate the output of attention by its input, W_o [attended * SiLU(W_g x)].
        hidden_dropout_prob: dropout after embedding, attention and feed-forward.
        embedding_dropout_prob: dropout after embedding, if it is to differ; None for ``hidden_dropout_prob``.
        attention_probs_dropout_prob: dropout on the weights of softmax and window attention.
        initializer_range: standard deviation of the initial weights of version 1, BERT's being 0.02; None: 0.02 for
            embeddings and 0.5 / sqrt(inputs) for linear layers, which suits every width.
        layer_norm_eps: epsilon of the normalization.
        pad_token_id: id of padding.
        pooling: of sequence classification: ``"first"`` token or ``"mean"``.
        classifier_activation: of sequence classification, as ``hidden_act``.

    Raises:
        ValueError: an option or a name is unknown, an option is of another kind or a size beyond its bounds, heads do
            not divide ``hidden_size`` evenly, or options contradict each other.
    """

    model_type = "paddle_rope_roformer"

    def __init__(
        self,
        vocab_size: int = 21128,
        hidden_size: int = 768,
        num_hidden_layers: int = 12,
        num_attention_heads: int = 12,
        intermediate_size: int = 3072,
        embedding_size: int | None = None,
        type_vocab_size: int = 0,
        version: int = 1,
        hidden_act: str = "gelu",
        attention: str | Sequence[str] = "softmax",
        attention_window: int = 64,
        causal: bool = False,
        position_embedding: str = "qk",
        max_position_embeddings: int | None = None,
        rotary_base: float = 10000.0,
        rotary_layout: str = "interleaved",
        rotary_dim: int | None = None,
        rotary_scaling: dict[str, Any] | None = None,
        rotary_learned: bool = False,
        share_kv: bool = False,
        feature_map: str = "elu_plus_one",
        num_random_features: int | None = None,
        normalizer: str = "unrotated",
        decay: Sequence[float] | None = None,
        convolutions: bool = False,
        output_gate: bool = False,
        hidden_dropout_prob: float = 0.1,
        embedding_dropout_prob: float | None = None,
        attention_probs_dropout_prob: float = 0.1,
        initializer_range: float | None = None,
        layer_norm_eps: float = 1e-12,
        pad_token_id: int = 0,
        pooling: str = "first",
        classifier_activation: str = "tanh",
        **kwargs: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        self.check_names(kwargs)
        check_kinds(_paddlenlp_kinds(), kwargs)
        check_kinds(_KINDS, {name: value for name, value in given.items() if not _is_default(name, value)})
        given["embedding_size"] = hidden_size if embedding_size is None else embedding_size
        given["attention"] = list(attention) if isinstance(attention, (list, tuple)) else attention
        given["decay"] = list(decay) if isinstance(decay, (list, tuple)) else decay
        super().__init__(pad_token_id=pad_token_id, **kwargs)
        for name, value in given.items():
            setattr(self, name, value)
        self._check()

    @classmethod
    def options(cls) -> set[str]:
        """The names of all options: this class's, those of the classes above it, and PaddleNLP's."""
        inherited = (parent for parent in cls.__mro__ if issubclass(parent, RoFormerConfig))
        own = {name for parent in inherited for name in inspect.signature(parent.__init__).parameters}
        return own - {"self", "kwargs"} | {*vars(PretrainedConfig()), *_PADDLENLP_OPTIONS}

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raise ValueError, with the nearest option, if one of ``names`` is none of the options."""
        known = cls.options()
        for name in names:
            if name in REMOVED:
                raise ValueError(
                    f"{cls.__name__}: {name} was removed, because it did not help; commit e394b37 is the last with it"
                )
            if name not in known:
                nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0)[0]
                raise ValueError(f"{cls.__name__} has no option {shown(name)}; the nearest is {nearest!r}")

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Self:
        """As PaddleNLP's, for the options in a file; one that is unknown is an error, as in the constructor.

        A file of another model of this library (``model_type``) has options that this class does not have, and they are
        left out: a masked language model starts from the folder of an entity model. In such a file only a name that is
        almost an option of the encoder is an error.
        """
        options = {name: value for name, value in config_dict.items() if name not in _WRITTEN_BY_LIBRARIES}
        options = without_removed(options)
        kind = str(options.pop("model_type", cls.model_type))
        if kind != cls.model_type and kind.startswith("paddle_rope"):
            known, encoder = cls.options(), inspect.signature(RoFormerConfig).parameters
            options = {
                name: value
                for name, value in options.items()
                if name in known or difflib.get_close_matches(name, encoder, n=1, cutoff=_ALMOST)
            }
        return super().from_dict(options, **kwargs)

    @property
    def head_dim(self) -> int:
        """Size of a head's queries, keys and values."""
        return self.hidden_size // self.num_attention_heads

    @property
    def layer_attention(self) -> list[str]:
        """``"softmax"``, ``"linear"`` or ``"window"`` for each layer, a list."""
        return self.attention if isinstance(self.attention, list) else [self.attention] * self.num_hidden_layers

    @property
    def has_rotary(self) -> bool:
        """Whether positions are known by RoPE."""
        return self.position_embedding in choices.PLACEMENTS

    def _check(self):
        for name in _SIZES:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(f"pad_token_id {self.pad_token_id} has no row in a vocab_size of {self.vocab_size}")
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(
                f"hidden_size {self.hidden_size} does not split into {self.num_attention_heads} heads of even size; "
                f"take a multiple of {2 * self.num_attention_heads}"
            )
        known = {
            "version": (1, 2),
            "hidden_act": choices.ACTIVATIONS,
            "classifier_activation": choices.ACTIVATIONS,
            "position_embedding": choices.POSITION_EMBEDDINGS,
            "feature_map": choices.FEATURE_MAPS,
            "normalizer": choices.NORMALIZERS,
            "pooling": choices.POOLINGS,
        }
        for name, names in known.items():
            choices.check_choice(name, getattr(self, name), names)
        for kind in self.layer_attention:
            choices.check_choice("attention", kind, choices.ATTENTION_KINDS)
        if len(self.layer_attention) != self.num_hidden_layers:
            raise ValueError(
                f"attention lists {len(self.layer_attention)} layers, num_hidden_layers is {self.num_hidden_layers}"
            )
        if self.attention_window < 1:
            raise ValueError(f"attention_window must be at least 1, got {self.attention_window}")
        if self.position_embedding == "alibi" and "window" in self.layer_attention:
            raise ValueError(
                "position_embedding 'alibi' is added to the scores of softmax attention to all tokens, not to those of "
                "a window; take RoPE, such as 'qk'"
            )
        if self.position_embedding == "alibi" and "linear" in self.layer_attention:
            raise ValueError(
                "position_embedding 'alibi' is added to the scores of softmax attention, which linear attention does "
                "not have; in linear attention decay does the same: exp(-slope) for each head"
            )
        if self.position_embedding == "learned" and not (self.max_position_embeddings or 0) > 0:
            raise ValueError("position_embedding 'learned' needs max_position_embeddings, the number of positions")
        if self.position_embedding == "sinusoidal" and self.embedding_size % 2:
            raise ValueError(f"sinusoidal positions need an even embedding_size, got {self.embedding_size}")
        if self.decay is not None and (
            len(self.decay) != self.num_attention_heads or not all(0 < gamma <= 1 for gamma in self.decay)
        ):
            raise ValueError(
                f"decay must be {self.num_attention_heads} numbers in (0, 1], one for each head, got {self.decay!r}"
            )
        check_convolutions(self.convolutions, self.causal)
        scaling = frequency_scaling(self.rotary_scaling)
        if scaling and scaling.amplitude != 1 and self.has_rotary and "linear" in self.layer_attention:
            raise ValueError(
                "rotary_scaling 'yarn' multiplies the scores of softmax attention, which linear attention does not "
                "have; take 'ntk' or 'linear'"
            )


def _is_default(name, value):
    """Whether None stands for no value, as it does where an option has a default of another kind."""
    return value is None and name == "embedding_size"


@functools.cache
def _paddlenlp_kinds():
    """The kinds of PaddleNLP's options: those of their defaults, as far as they have any."""
    kinds = {}
    for name, default in vars(PretrainedConfig()).items():
        if isinstance(default, bool):
            kinds[name] = TRUTH
        elif isinstance(default, int):
            kinds[name] = integer(-(2**31), 2**31)
        elif isinstance(default, float):
            kinds[name] = number()
        elif isinstance(default, (str, dict)):
            kinds[name] = one_of("a text" if isinstance(default, str) else "an object", type(default))
    return {**kinds, **_PADDLENLP_KINDS}
