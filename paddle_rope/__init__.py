"""Rotary position embedding, RoFormer and GlobalPointer in PaddlePaddle."""

import zlib  # noqa: F401, I001  paddle 2.6.2 exports zlib symbols of its own: load the system's first

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
    sparse_multilabel_categorical_crossentropy,
)
from paddle_rope.roformer import CharTokenizer, Encoding, RoFormerConfig, RoFormerModel, WordTokenizer, load_tokenizer
from paddle_rope.rotary import RotaryPositionEmbedding, interleaved_to_half
from paddle_rope.rotary_frequencies import LinearScaling, NTKScaling, YaRNScaling

__all__ = [
    "CharTokenizer",
    "EfficientGlobalPointer",
    "Encoding",
    "GlobalPointer",
    "LinearScaling",
    "MultiHeadAttention",
    "NTKScaling",
    "RoFormerConfig",
    "RoFormerModel",
    "RotaryPositionEmbedding",
    "WordTokenizer",
    "YaRNScaling",
    "causal_linear_attention",
    "decode_spans",
    "interleaved_to_half",
    "linear_attention",
    "linear_attention_step",
    "load_tokenizer",
    "multilabel_categorical_crossentropy",
    "softmax_attention",
    "sparse_multilabel_categorical_crossentropy",
]
