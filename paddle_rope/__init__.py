"""Rotary position embedding, RoFormer and GlobalPointer in PaddlePaddle."""

import zlib  # noqa: F401, I001  paddle 2.6.2 exports zlib symbols of its own: load the system's first

from paddle_rope.attention import MultiHeadAttention, linear_attention, softmax_attention
from paddle_rope.global_pointer import (
    EfficientGlobalPointer,
    GlobalPointer,
    decode_spans,
    multilabel_categorical_crossentropy,
)
from paddle_rope.roformer import CharTokenizer, RoFormerConfig, RoFormerModel
from paddle_rope.rotary import RotaryPositionEmbedding

__all__ = [
    "CharTokenizer",
    "EfficientGlobalPointer",
    "GlobalPointer",
    "MultiHeadAttention",
    "RoFormerConfig",
    "RoFormerModel",
    "RotaryPositionEmbedding",
    "decode_spans",
    "linear_attention",
    "multilabel_categorical_crossentropy",
    "softmax_attention",
]
