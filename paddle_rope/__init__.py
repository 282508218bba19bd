"""Rotary position embedding, RoFormer and GlobalPointer in PaddlePaddle.

Names load at first use: neither ``import paddle_rope`` nor the tokenizers import paddle.
Nothing here imports PaddleNLP, and importing changes nothing in the process.
"""

from typing import TYPE_CHECKING

from paddle_rope.machine import lazy_names

__version__ = "0.3.0"

if TYPE_CHECKING:
    from paddle_rope.attention.linear import linear_attention
    from paddle_rope.attention.multi_head import MultiHeadAttention
    from paddle_rope.attention.softmax import softmax_attention, window_attention
    from paddle_rope.attention.steps import linear_attention_step
    from paddle_rope.global_pointer.decoding import decode_spans
    from paddle_rope.global_pointer.heads import EfficientGlobalPointer, GlobalPointer
    from paddle_rope.global_pointer.losses import (
        multilabel_categorical_crossentropy,
        span_positives,
        sparse_multilabel_categorical_crossentropy,
    )
    from paddle_rope.machine import prepare_process
    from paddle_rope.positions import LearnedPositionEmbedding, alibi_bias, alibi_slopes, sinusoidal_embedding
    from paddle_rope.roformer import (
        CharTokenizer,
        Encoding,
        RoFormerConfig,
        RoFormerForCausalLM,
        RoFormerForMaskedLM,
        RoFormerForSequenceClassification,
        RoFormerModel,
        WordPieceTokenizer,
        WordTokenizer,
        load_tokenizer,
    )
    from paddle_rope.rotary import Rope, RotaryPositionEmbedding, apply_rotary, interleaved_to_half
    from paddle_rope.rotary_frequencies import LinearScaling, NTKScaling, YaRNScaling
    from paddle_rope.tasks.recipes import load, train

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "attention.linear": ["linear_attention"],
    "attention.multi_head": ["MultiHeadAttention"],
    "attention.softmax": ["softmax_attention", "window_attention"],
    "attention.steps": ["linear_attention_step"],
    "global_pointer.decoding": ["decode_spans"],
    "global_pointer.heads": ["EfficientGlobalPointer", "GlobalPointer"],
    "global_pointer.losses": [
        "multilabel_categorical_crossentropy", "span_positives", "sparse_multilabel_categorical_crossentropy",
    ],
    "machine": ["prepare_process"],
    "positions": ["LearnedPositionEmbedding", "alibi_bias", "alibi_slopes", "sinusoidal_embedding"],
    "roformer": [
        "CharTokenizer", "Encoding", "RoFormerConfig", "RoFormerForCausalLM", "RoFormerForMaskedLM",
        "RoFormerForSequenceClassification", "RoFormerModel", "WordPieceTokenizer", "WordTokenizer", "load_tokenizer",
    ],
    "rotary": ["Rope", "RotaryPositionEmbedding", "apply_rotary", "interleaved_to_half"],
    "rotary_frequencies": ["LinearScaling", "NTKScaling", "YaRNScaling"],
    "tasks.recipes": ["load", "train"],
})  # fmt: skip
