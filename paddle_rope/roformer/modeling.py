"""RoFormer: a transformer encoder whose only notion of position is RoPE (arXiv 2104.09864)."""

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddlenlp.transformers import PretrainedModel

from paddle_rope.attention import MultiHeadAttention
from paddle_rope.layers import Dropout, Linear
from paddle_rope.roformer.configuration import RoFormerConfig
from paddle_rope.rotary import RotaryPositionEmbedding


class RoFormerBlock(nn.Layer):
    """One block with normalisation after each residual sum: attention, then feed-forward with GELU."""

    def __init__(self, config):
        super().__init__()
        hidden_size = config.hidden_size
        self.attention = MultiHeadAttention(
            hidden_size, config.num_attention_heads, config.attention, config.attention_probs_dropout_prob
        )
        self.attention_norm = nn.LayerNorm(hidden_size, epsilon=config.layer_norm_eps)
        self.feed_forward_in = Linear(hidden_size, config.intermediate_size)
        self.feed_forward_out = Linear(config.intermediate_size, hidden_size)
        self.feed_forward_norm = nn.LayerNorm(hidden_size, epsilon=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden, rotate, key_mask):
        """``[batch, seq, hidden]`` -> ``[batch, seq, hidden]``."""
        hidden = self.attention_norm(hidden + self.dropout(self.attention(hidden, rotate, key_mask)))
        inner = self.feed_forward_out(F.gelu(self.feed_forward_in(hidden)))
        return self.feed_forward_norm(hidden + self.dropout(inner))


class RoFormerPretrainedModel(PretrainedModel):
    """Ties RoFormer to PaddleNLP's loading and saving, and initialises weights."""

    config_class = RoFormerConfig
    base_model_prefix = "roformer"
    model_config_file = "config.json"

    def _init_weights(self, layer):
        """Normal weights of ``initializer_range`` for linear and embedding layers; biases stay 0."""
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            layer.weight.set_value(
                paddle.normal(std=self.config.initializer_range, shape=layer.weight.shape).astype(layer.weight.dtype)
            )


class RoFormerModel(RoFormerPretrainedModel):
    """The encoder: token embedding, ``num_hidden_layers`` blocks.

    Args:
        config: :class:`RoFormerConfig`.
    """

    def __init__(self, config):
        super().__init__(config)
        self.token_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.embedding_norm = nn.LayerNorm(config.hidden_size, epsilon=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.rotary = RotaryPositionEmbedding(config.hidden_size // config.num_attention_heads, config.rotary_base)
        self.blocks = nn.LayerList([RoFormerBlock(config) for _ in range(config.num_hidden_layers)])

    def forward(self, input_ids, attention_mask=None):
        """Encode a batch.

        Args:
            input_ids: int64 ``[batch, seq]``, any seq.
            attention_mask: ``[batch, seq]``, bool or 0/1, 0 at padding; by default no padding.

        Returns:
            Hidden states ``[batch, seq, hidden]``; those at padding mean nothing.
        """
        key_mask = None if attention_mask is None else attention_mask.astype("bool")
        hidden = self.dropout(self.embedding_norm(self.token_embedding(input_ids)))
        for block in self.blocks:
            hidden = block(hidden, self.rotary, key_mask)
        return hidden
