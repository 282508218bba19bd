from paddle_rope.attention.causal_linear import LinearAttentionState, causal_linear_attention, linear_attention_step
from paddle_rope.attention.feature_maps import (
    FEATURE_MAPS,
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    make_feature_map,
    relu,
    squared_relu,
)
from paddle_rope.attention.linear import linear_attention
from paddle_rope.attention.multi_head import ATTENTION_KINDS, KeyValueState, MultiHeadAttention
from paddle_rope.attention.placement import PLACEMENTS, depends_on_relative_position_only
from paddle_rope.attention.similarity import MIN_DENOMINATOR, NORMALIZERS, DenominatorReport
from paddle_rope.attention.softmax import softmax_attention

__all__ = [
    "ATTENTION_KINDS",
    "FEATURE_MAPS",
    "MIN_DENOMINATOR",
    "NORMALIZERS",
    "PLACEMENTS",
    "DenominatorReport",
    "KeyValueState",
    "LinearAttentionState",
    "MultiHeadAttention",
    "OnePlusCosine",
    "OrthogonalRandomFeatures",
    "SoftmaxExp",
    "causal_linear_attention",
    "depends_on_relative_position_only",
    "elu_plus_one",
    "exp",
    "linear_attention",
    "linear_attention_step",
    "make_feature_map",
    "relu",
    "softmax_attention",
    "squared_relu",
]
