"""Multi-head self-attention: projections around an attention kernel."""

from paddle import nn

from paddle_rope.attention.linear import linear_attention
from paddle_rope.attention.softmax import softmax_attention
from paddle_rope.layers import Dropout, Linear

ATTENTION_KINDS = ("softmax", "linear")


class MultiHeadAttention(nn.Layer):
    """Projects to heads, attends with RoPE on queries and keys, projects back.

    Args:
        hidden_size: size of the inputs and outputs.
        num_heads: number of heads; divides ``hidden_size``.
        kind: ``"softmax"`` (quadratic in length) or ``"linear"``.
        dropout: on the attention weights; acts on softmax attention only, linear attention has no weights.
    """

    def __init__(self, hidden_size, num_heads, kind="softmax", dropout=0.0):
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(f"hidden_size {hidden_size} is not a multiple of num_heads {num_heads}")
        if kind not in ATTENTION_KINDS:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_KINDS)}, got {kind!r}")
        self.num_heads = num_heads
        self.kind = kind
        self.dropout = Dropout(dropout)
        self.query = Linear(hidden_size, hidden_size)
        self.key = Linear(hidden_size, hidden_size)
        self.value = Linear(hidden_size, hidden_size)
        self.output = Linear(hidden_size, hidden_size)

    def forward(self, hidden, rotate=None, key_mask=None):
        """``hidden`` ``[batch, seq, hidden]``, ``key_mask`` bool ``[batch, seq]`` -> ``[batch, seq, hidden]``."""
        q, k, v = (self._split_heads(project(hidden)) for project in (self.query, self.key, self.value))
        if self.kind == "softmax":
            attended = softmax_attention(q, k, v, rotate, key_mask, self.dropout)
        else:
            attended = linear_attention(q, k, v, rotate, key_mask)
        batch, heads, seq, head_dim = attended.shape
        return self.output(attended.transpose([0, 2, 1, 3]).reshape([batch, seq, heads * head_dim]))

    def _split_heads(self, x):
        batch, seq, hidden = x.shape
        return x.reshape([batch, seq, self.num_heads, hidden // self.num_heads]).transpose([0, 2, 1, 3])
