"""Multi-head self-attention: projections around an attention kernel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import paddle.nn.functional as F
from paddle import Tensor, nn, no_grad
from paddle.base.framework import EagerParamBase

from paddle_rope.attention.arguments import check_placement, for_all_heads
from paddle_rope.attention.feature_maps import FeatureMapLike, elu_plus_one
from paddle_rope.attention.key_value_cache import softmax_attention_step
from paddle_rope.attention.linear import check_linear_options, linear_attention, linear_attention_step
from paddle_rope.attention.softmax import softmax_attention, window_attention
from paddle_rope.layers import DepthwiseConvolution, Dropout, Linear, first_two
from paddle_rope.options import ATTENTION_KINDS, choice
from paddle_rope.rotary import Rope


class AttentionCache(NamedTuple):
    """The cache of a causal :class:`MultiHeadAttention` after the previous tokens."""

    state: Any = None  # of linear_attention_step or softmax_attention_step
    of_values: Tensor | None = None  # caches of the convolutions
    of_output: Tensor | None = None


class MultiHeadAttention(nn.Layer):
    """Projects to heads, attends with RoPE, projects back.

    Args:
        hidden_size: size of the inputs and outputs.
        num_heads: number of heads; divides ``hidden_size``.
        kind: ``"softmax"`` (quadratic in length), ``"linear"``, or ``"window"``, softmax over nearby tokens.
        dropout: on the attention weights; linear attention has none.
        placement: what RoPE rotates, some of the letters ``qkvo``.
        share_kv: one projection gives keys and values; they share a cache tensor if RoPE rotates both or neither.
        num_key_value_heads: a divisor of ``num_heads``: groups of queries share a key and value (arXiv 2305.13245).
        bias: whether the projections have biases.
        causal: no token sees a later one.
        feature_map, normalizer, decay: options of linear attention, as in :func:`~paddle_rope.linear_attention`. A
            trained decay is the parameter ``decay`` of the layer: itself if it is a parameter, otherwise a copy.
        window: largest distance of a key that ``"window"`` sees (:func:`~paddle_rope.window_attention`).
        convolutions: v = SiLU(c(W_v x)), and attended + c(v) with v before any rotation (MILA, arXiv 2405.16605); each
            c is a :class:`~paddle_rope.layers.DepthwiseConvolution`.
        output_gate: W_o [attended * SiLU(W_g x)] instead of W_o attended (arXiv 2307.08621, eq. 8; MILA).

    Raises:
        ValueError: sizes that do not fit, an unknown kind or placement, contradicting options of linear attention.

    >>> import paddle, paddle_rope
    >>> layer, rotary = MultiHeadAttention(8, 2, "linear"), paddle_rope.RotaryPositionEmbedding(4)
    >>> tuple(layer(paddle.ones([1, 5, 8]), rotary.cos_sin(5)).shape)
    (1, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        kind: str = "softmax",
        dropout: float = 0.0,
        placement: str = "qk",
        share_kv: bool = False,
        num_key_value_heads: int | None = None,
        bias: bool = True,
        causal: bool = False,
        feature_map: FeatureMapLike = elu_plus_one,
        normalizer: str = "unrotated",
        decay: Sequence[float] | Tensor | None = None,
        window: int = 64,
        convolutions: bool = False,
        output_gate: bool = False,
    ) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(f"hidden_size {hidden_size} is not a multiple of num_heads {num_heads}")
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        if groups < 1 or num_heads % groups:
            raise ValueError(f"num_key_value_heads must divide num_heads {num_heads}, got {groups}")
        choice(*ATTENTION_KINDS).check("attention", kind)
        check_placement(placement)
        if kind == "linear":
            check_linear_options(feature_map, normalizer, placement, whole_sequence=not causal)
        self.num_heads, self.kind, self.causal, self.placement = num_heads, kind, causal, placement
        self.head_dim = hidden_size // num_heads
        self.window = window if kind == "window" else None
        self.dropout = Dropout(dropout)
        self.feature_map = feature_map  # a sublayer if it has tensors
        if isinstance(decay, Tensor) and not decay.stop_gradient:
            if not isinstance(decay, EagerParamBase):
                start = nn.initializer.Assign(decay.detach())
                decay = self.create_parameter(decay.shape, dtype=decay.dtype, default_initializer=start)
            self.decay = decay
        self.linear_options: dict[str, Any] = {"feature_map": feature_map, "normalizer": normalizer, "decay": decay}

        def projection(heads=num_heads):
            return Linear(hidden_size, heads * self.head_dim, bias_attr=None if bias else False)

        def convolution(center):
            return DepthwiseConvolution(groups * self.head_dim, center=center, causal=causal) if convolutions else None

        self.query, self.key = projection(), projection(groups)
        self.value = None if share_kv else projection(groups)
        self.output = projection()
        self.value_convolution, self.output_convolution = convolution(1.0), convolution(0.0)
        self.gate = projection() if output_gate else None

    def forward(
        self,
        hidden: Tensor,
        rope: Rope | None = None,
        key_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        score_bias: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor:
        """Attend within ``hidden``, ``[batch, seq, hidden]`` -> same shape.

        Args:
            rope: from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`; None for no rotation.
            key_mask: bool ``[batch, seq]``, False at padding.
            segment_ids, cu_seqlens: for packed texts, as in :func:`~paddle_rope.softmax_attention`.
            score_bias: added to the scores of softmax attention, broadcast to ``[batch, heads, seq, seq]``; linear
                and window attention ignore it.
        """
        query, key, value = self._project(hidden)
        if self.value_convolution is not None:
            value = F.silu(self.value_convolution(value, key_mask, segment_ids))
        q, k, v = self._heads(query, key, value)
        k, v = (for_all_heads(x, self.num_heads) for x in (k, v))
        options: dict[str, Any] = {"segment_ids": segment_ids, "causal": self.causal, "placement": self.placement}
        if self.kind == "linear":
            attended = linear_attention(q, k, v, rope, key_mask, **options, **self.linear_options)
        elif self.window is not None:
            attended = window_attention(q, k, v, self.window, rope, key_mask, self.dropout.rate, **options)
        else:
            options |= {"score_bias": score_bias, "cu_seqlens": cu_seqlens}
            attended = softmax_attention(q, k, v, rope, key_mask, self.dropout.rate, **options)
        added = self.output_convolution and self.output_convolution(value, key_mask, segment_ids)
        return self._merge(attended, added, hidden)

    @no_grad()
    def forward_with_cache(
        self,
        hidden: Tensor,
        cache: AttentionCache | None = None,
        rope: Rope | None = None,
        key_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> tuple[Tensor, AttentionCache]:
        """Attend from the next tokens to the cached ones and each other, without gradients; causal layers only.

        Args:
            hidden: ``[batch, new, hidden]``.
            cache: as returned by the previous call, None at the start. Several texts may continue it.
            rope, score_bias: as in :meth:`forward`, but at the positions of the new tokens.
            key_mask: bool ``[batch, seq]`` of all tokens, old and new.

        Returns:
            ``[batch, new, hidden]``, as :meth:`forward` of the whole text gives for its last tokens; and the new cache.
        """
        if not self.causal:
            raise ValueError("only causal attention continues from a cache: give causal=True")
        state, of_values, of_output = cache or AttentionCache()
        new_keys = None if key_mask is None else key_mask[:, -hidden.shape[1] :]
        query, key, value = self._project(hidden)
        if self.value_convolution is not None:
            value, of_values = self.value_convolution.forward_with_cache(value, of_values, new_keys)
            value = F.silu(value)
        q, k, v = self._heads(query, key, value)
        if self.kind == "linear":
            k, v = (for_all_heads(x, self.num_heads) for x in (k, v))
            options = {"placement": self.placement, **self.linear_options}
            state, attended = linear_attention_step(state, q, k, v, rope, new_keys, **options)
        else:
            options = {"placement": self.placement, "score_bias": score_bias, "window": self.window}
            state, attended = softmax_attention_step(state, q, k, v, rope, key_mask, self.dropout.rate, **options)
        added = None
        if self.output_convolution is not None:
            added, of_output = self.output_convolution.forward_with_cache(value, of_output, new_keys)
        return self._merge(attended, added, hidden), AttentionCache(state, of_values, of_output)

    def _project(self, hidden):
        """Query, key and value ``[batch, seq, heads * head_dim]``."""
        key = self.key(hidden)
        return self.query(hidden), key, key if self.value is None else self.value(hidden)

    def _heads(self, query, key, value):
        """``[batch, seq, heads, head_dim]`` each; v is k where the value is the key."""
        k = self._split(key)
        return self._split(query), k, k if value is key else self._split(value)

    def _split(self, x):
        return x.reshape([*first_two(x), x.shape[-1] // self.head_dim, self.head_dim])

    def _merge(self, attended, added, hidden):
        """Join the heads, add the output of the convolution, multiply by the gate and project."""
        if added is not None:
            attended = attended + for_all_heads(self._split(added), self.num_heads)
        attended = attended.reshape([*first_two(attended), attended.shape[2] * attended.shape[3]])
        if self.gate is not None:
            attended = attended * F.silu(self.gate(hidden))
        return self.output(attended)
