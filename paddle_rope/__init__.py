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

__all__ = [
    "CharTokenizer",
    "EfficientGlobalPointer",
    "Encoding",
    "GlobalPointer",
    "LearnedPositionEmbedding",
    "LinearScaling",
    "MultiHeadAttention",
    "NTKScaling",
    "RoFormerConfig",
    "RoFormerForCausalLM",
    "RoFormerForMaskedLM",
    "RoFormerForSequenceClassification",
    "RoFormerModel",
    "RotaryPositionEmbedding",
    "WordTokenizer",
    "YaRNScaling",
    "alibi_bias",
    "alibi_slopes",
    "causal_linear_attention",
    "decode_spans",
    "interleaved_to_half",
    "linear_attention",
    "linear_attention_step",
    "load_tokenizer",
    "multilabel_categorical_crossentropy",
    "sinusoidal_embedding",
    "softmax_attention",
    "sparse_multilabel_categorical_crossentropy",
]
