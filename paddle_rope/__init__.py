"""Rotary position embedding, RoFormer and GlobalPointer in PaddlePaddle.

Names are loaded when they are first asked for: ``import paddle_rope`` imports neither paddle nor PaddleNLP, the layers
import paddle alone, and only the RoFormer models import PaddleNLP.
"""

import importlib
import zlib  # noqa: F401  paddle 2.6.2 exports zlib symbols of its own: load the system's first
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.attention import (
        MultiHeadAttention,
        causal_linear_attention,
        linear_attention,
        linear_attention_step,
        softmax_attention,
    )
    from paddle_rope.global_pointer import (
        EfficientGlobalPointer,
        GlobalPointer,
        decode_spans,
        multilabel_categorical_crossentropy,
        span_positives,
        sparse_multilabel_categorical_crossentropy,
    )
    from paddle_rope.positions import LearnedPositionEmbedding, alibi_bias, alibi_slopes, sinusoidal_embedding
    from paddle_rope.roformer import (
        CharTokenizer,
        Encoding,
        RoFormerConfig,
        RoFormerForCausalLM,
        RoFormerForMaskedLM,
        RoFormerForSequenceClassification,
        RoFormerModel,
        WordTokenizer,
        load_tokenizer,
    )
    from paddle_rope.rotary import RotaryPositionEmbedding, interleaved_to_half
    from paddle_rope.rotary_frequencies import LinearScaling, NTKScaling, YaRNScaling

_HOMES = {
    "paddle_rope.attention": (
        "MultiHeadAttention",
        "causal_linear_attention",
        "linear_attention",
        "linear_attention_step",
        "softmax_attention",
    ),
    "paddle_rope.global_pointer": (
        "EfficientGlobalPointer",
        "GlobalPointer",
        "decode_spans",
        "multilabel_categorical_crossentropy",
        "span_positives",
        "sparse_multilabel_categorical_crossentropy",
    ),
    "paddle_rope.positions": ("LearnedPositionEmbedding", "alibi_bias", "alibi_slopes", "sinusoidal_embedding"),
    "paddle_rope.roformer": (
        "CharTokenizer",
        "Encoding",
        "RoFormerConfig",
        "RoFormerForCausalLM",
        "RoFormerForMaskedLM",
        "RoFormerForSequenceClassification",
        "RoFormerModel",
        "WordTokenizer",
        "load_tokenizer",
    ),
    "paddle_rope.rotary": ("RotaryPositionEmbedding", "interleaved_to_half"),
    "paddle_rope.rotary_frequencies": ("LinearScaling", "NTKScaling", "YaRNScaling"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str):
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
