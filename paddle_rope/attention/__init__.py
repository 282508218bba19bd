from paddle_rope.attention.feature_maps import elu_plus_one
from paddle_rope.attention.linear import linear_attention
from paddle_rope.attention.multi_head import ATTENTION_KINDS, MultiHeadAttention
from paddle_rope.attention.softmax import softmax_attention

__all__ = ["ATTENTION_KINDS", "MultiHeadAttention", "elu_plus_one", "linear_attention", "softmax_attention"]
