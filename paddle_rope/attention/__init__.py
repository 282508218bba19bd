from paddle_rope.attention.causal_linear import LinearAttentionState, causal_linear_attention, linear_attention_step
from paddle_rope.attention.feature_maps import (
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    relu,
    squared_relu,
)
from paddle_rope.attention.linear import linear_attention
from paddle_rope.attention.multi_head import ATTENTION_KINDS, MultiHeadAttention
from paddle_rope.attention.similarity import MIN_DENOMINATOR, NORMALIZERS, DenominatorReport
from paddle_rope.attention.softmax import softmax_attention

__all__ = [
    "ATTENTION_KINDS",
    "MIN_DENOMINATOR",
    "NORMALIZERS",
    "DenominatorReport",
    "LinearAttentionState",
    "MultiHeadAttention",
    "OnePlusCosine",
    "OrthogonalRandomFeatures",
    "SoftmaxExp",
    "causal_linear_attention",
    "elu_plus_one",
    "exp",
    "linear_attention",
    "linear_attention_step",
    "relu",
    "softmax_attention",
    "squared_relu",
]
