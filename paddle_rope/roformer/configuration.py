"""Configuration of a RoFormer."""

from paddlenlp.transformers import PretrainedConfig

from paddle_rope.attention import ATTENTION_KINDS


class RoFormerConfig(PretrainedConfig):
    """Sizes of a RoFormer encoder (arXiv 2104.09864).

    There is no ``max_position_embeddings``: RoPE has no longest position.

    Args:
        vocab_size: rows of the token embedding.
        hidden_size: size of the hidden states.
        num_hidden_layers: transformer blocks.
        num_attention_heads: heads a block; divides ``hidden_size`` into an even ``head_dim``.
        intermediate_size: inner size of the feed-forward layers.
        attention: ``"softmax"`` (quadratic in length) or ``"linear"``.
        rotary_base: base of RoPE.
        hidden_dropout_prob: dropout after embedding, attention and feed-forward.
        attention_probs_dropout_prob: dropout on softmax attention weights.
        initializer_range: standard deviation of the initial weights.
        layer_norm_eps: epsilon of layer normalisation.
        pad_token_id: id of padding.

    Raises:
        ValueError: a size is not positive, heads do not divide ``hidden_size`` evenly, or ``attention`` is unknown.
    """

    model_type = "paddle_rope_roformer"

    def __init__(
        self,
        vocab_size=21128,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        attention="softmax",
        rotary_base=10000.0,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
        pad_token_id=0,
        **kwargs,
    ):
        super().__init__(pad_token_id=pad_token_id, **kwargs)
        sizes = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_hidden_layers": num_hidden_layers,
            "num_attention_heads": num_attention_heads,
            "intermediate_size": intermediate_size,
        }
        for name, size in sizes.items():
            if size <= 0:
                raise ValueError(f"{name} must be positive, got {size}")
        if hidden_size % (2 * num_attention_heads):
            raise ValueError(
                f"hidden_size {hidden_size} does not split into {num_attention_heads} heads of even size; "
                f"take a multiple of {2 * num_attention_heads}"
            )
        if attention not in ATTENTION_KINDS:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_KINDS)}, got {attention!r}")
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        self.attention = attention
        self.rotary_base = rotary_base
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
