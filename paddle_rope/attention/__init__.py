from paddle_rope.attention.arguments import depends_on_relative_position_only
from paddle_rope.attention.feature_maps import (
    FeatureMap,
    OnePlusCosine,
    OrthogonalRandomFeatures,
    SoftmaxExp,
    elu_plus_one,
    exp,
    make_feature_map,
    relu,
)
from paddle_rope.attention.linear import (
    MIN_DENOMINATOR,
    MIN_OVERLAP,
    LinearAttentionState,
    linear_attention,
    linear_attention_step,
)
from paddle_rope.attention.multi_head import AttentionCache, MultiHeadAttention
from paddle_rope.attention.softmax import softmax_attention
from paddle_rope.attention.window import KeyValueState, softmax_attention_step, window_attention

__all__ = [
    "MIN_DENOMINATOR",
    "MIN_OVERLAP",
    "AttentionCache",
    "FeatureMap",
    "KeyValueState",
    "LinearAttentionState",
    "MultiHeadAttention",
    "OnePlusCosine",
    "OrthogonalRandomFeatures",
    "SoftmaxExp",
    "depends_on_relative_position_only",
    "elu_plus_one",
    "exp",
    "linear_attention",
    "linear_attention_step",
    "make_feature_map",
    "relu",
    "softmax_attention",
    "softmax_attention_step",
    "window_attention",
]
