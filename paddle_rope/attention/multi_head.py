"""Multi-head self-attention: projections around an attention kernel."""

from collections.abc import Sequence
from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn
from paddle.base.framework import EagerParamBase

from paddle_rope.attention.arguments import check_linear_options, check_placement, for_all_heads
from paddle_rope.attention.feature_maps import FeatureMapLike, elu_plus_one
from paddle_rope.attention.linear import linear_attention
from paddle_rope.attention.softmax import softmax_attention, window_attention
from paddle_rope.attention.steps import linear_attention_step, softmax_attention_step
from paddle_rope.layers import DepthwiseConvolution, Dropout, Linear, projected
from paddle_rope.options import ATTENTION_KINDS, choice
from paddle_rope.rotary import Rope


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

    Raises ValueError for sizes that do not fit, and unknown or contradicting options.

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
        cache: dict[str, Any] | None = None,
    ) -> Tensor:
        """Attend within ``hidden``, ``[batch, seq, hidden]`` -> same shape, and to the tokens of a ``cache``.

        Args:
            rope: from :meth:`~paddle_rope.RotaryPositionEmbedding.cos_sin`; None for no rotation.
            key_mask: bool ``[batch, seq]``, False at padding; with a cache, of all tokens, old and new.
            segment_ids, cu_seqlens: for packed texts, as in :func:`~paddle_rope.softmax_attention`.
            score_bias: added to the scores of softmax attention, broadcast to ``[batch, heads, seq, seq]``; linear
                and window attention ignore it.
            cache: what earlier calls of a causal layer left, {} at the beginning of a text; this call adds its tokens,
                without gradients. Texts that branch need a ``copy.deepcopy`` each.
        """
        if cache is not None and not self.causal:
            raise ValueError("only causal attention continues from a cache: give causal=True")
        of_values, of_output = (None if cache is None else cache.setdefault(name, {}) for name in ("values", "output"))
        new_keys = key_mask if key_mask is None or cache is None else key_mask[:, -hidden.shape[1] :]
        q, k, v, gate = self._project(hidden)
        if self.value_convolution is not None:
            v = self._split(F.silu(self.value_convolution(_joined(v), new_keys, segment_ids, of_values)))
        if cache is None:
            attended = self._attend(q, k, v, rope, key_mask, segment_ids, score_bias, cu_seqlens)
        else:
            attended = self._continue(q, k, v, rope, key_mask, new_keys, score_bias, cache)
        if self.output_convolution is not None:
            added = self._split(self.output_convolution(_joined(v), new_keys, segment_ids, of_output))
            attended = attended + for_all_heads(added, self.num_heads)
        return self.output(_joined(attended if gate is None else attended * F.silu(gate)))

    def _project(self, hidden):
        """Query, key, value and gate ``[batch, seq, heads, head_dim]``; v is k where the value is the key."""
        layers = [layer for layer in (self.query, self.key, self.value, self.gate) if layer is not None]
        q, k, *others = projected(hidden, layers, self.head_dim)
        v = k if self.value is None else others[0]
        return q, k, v, None if self.gate is None else others[-1]

    def _attend(self, q, k, v, rope, key_mask, segment_ids, score_bias, cu_seqlens):
        k, v = (for_all_heads(x, self.num_heads) for x in (k, v))
        options: dict[str, Any] = {"segment_ids": segment_ids, "causal": self.causal, "placement": self.placement}
        if self.kind == "linear":
            return linear_attention(q, k, v, rope, key_mask, **options, **self.linear_options)
        if self.window is not None:
            return window_attention(q, k, v, self.window, rope, key_mask, self.dropout.rate, **options)
        options |= {"score_bias": score_bias, "cu_seqlens": cu_seqlens}
        return softmax_attention(q, k, v, rope, key_mask, self.dropout.rate, **options)

    @paddle.no_grad()
    def _continue(self, q, k, v, rope, key_mask, new_keys, score_bias, cache):
        state = cache.get("state")
        if self.kind == "linear":
            k, v = (for_all_heads(x, self.num_heads) for x in (k, v))
            options = {"placement": self.placement, **self.linear_options}
            cache["state"], attended = linear_attention_step(state, q, k, v, rope, new_keys, **options)
        else:
            options = {"placement": self.placement, "score_bias": score_bias, "window": self.window}
            options["dropout"] = self.dropout.rate
            cache["state"], attended = softmax_attention_step(state, q, k, v, rope, key_mask, **options)
        return attended

    def _split(self, x):
        return x.reshape([0, 0, x.shape[-1] // self.head_dim, self.head_dim])  # 0 keeps a size, known or not


def _joined(x):
    return x.reshape([0, 0, x.shape[2] * x.shape[3]])
