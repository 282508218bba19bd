"""Multi-head self-attention: projections around an attention kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_rope.attention.feature_maps import FeatureMapLike, elu_plus_one
from paddle_rope.attention.linear import (
    LinearAttentionState,
    causal_linear_attention,
    check_linear_options,
    linear_attention,
)
from paddle_rope.attention.placement import Rotation, check_placement, rotate_at
from paddle_rope.attention.softmax import softmax_attention
from paddle_rope.attention.window import window_attention
from paddle_rope.convolution import DepthwiseConvolution, check_convolutions
from paddle_rope.layers import Dropout, Linear, first_two, projections
from paddle_rope.native.linear_attention import native_linear_attention
from paddle_rope.native.softmax_attention import native_softmax_attention
from paddle_rope.options import ATTENTION_KINDS, check_choice


class KeyValueState(NamedTuple):
    """What a causal softmax attention remembers of the tokens before, with a window of the last ones: their keys and
    values, rotated where RoPE is."""

    keys: Tensor  # [batch, heads, seq, head_dim]
    values: Tensor | None  # [batch, heads, seq, head_dim]; None where they are the keys


class MultiHeadAttention(nn.Layer):
    """Projects to heads, attends with RoPE, projects back.

    Args:
        hidden_size: size of the inputs and outputs.
        num_heads: number of heads; divides ``hidden_size``.
        kind: ``"softmax"`` (quadratic in length), ``"linear"``, or ``"window"``: softmax attention to the tokens near
            by, linear in length.
        dropout: on the attention weights; linear attention has none.
        placement: what RoPE rotates, some of the letters ``qkvo`` (:mod:`~paddle_rope.attention.placement`).
        share_kv: one projection gives keys and values; with RoPE on both of them, or on neither, the cache of softmax
            attention is then one tensor.
        bias: whether the projections have biases.
        causal: no token sees a later one.
        feature_map, normalizer: of linear attention, as :func:`~paddle_rope.linear_attention`.
        decay: of linear attention, a number gamma in (0, 1] for each head (:mod:`~paddle_rope.attention.decay`); None
            for none.
        window: largest distance of a key that ``"window"`` sees (:func:`~paddle_rope.window_attention`).
        convolutions: v = SiLU(c(W_v x)), and attended + c(v) with v before any rotation (MILA, arXiv 2405.16605); each
            c is a :class:`~paddle_rope.convolution.DepthwiseConvolution`. Not for ``causal`` attention.
        output_gate: W_o [attended * SiLU(W_g x)] in the place of W_o attended (arXiv 2307.08621, eq. 8; MILA).

    Raises:
        ValueError: sizes that do not fit, an unknown kind or placement, convolutions with ``causal``, options of linear
            attention that contradict each other.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        kind: str = "softmax",
        dropout: float = 0.0,
        placement: str = "qk",
        share_kv: bool = False,
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
        check_choice("attention", kind, ATTENTION_KINDS)
        check_convolutions(convolutions, causal)
        check_placement(placement)
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        if kind == "linear":
            check_linear_options(feature_map, normalizer, placement, whole_sequence=not causal)
        self.num_heads = num_heads
        self.kind = kind
        self.placement = placement
        self.share_kv = share_kv
        self.causal = causal
        self.dropout = Dropout(dropout)
        self.feature_map = feature_map
        self.normalizer = normalizer
        self.decay = decay
        self.window = window
        bias_attr = None if bias else False
        self.query = Linear(hidden_size, hidden_size, bias_attr=bias_attr)
        self.key = Linear(hidden_size, hidden_size, bias_attr=bias_attr)
        if not share_kv:
            self.value = Linear(hidden_size, hidden_size, bias_attr=bias_attr)
        self.output = Linear(hidden_size, hidden_size, bias_attr=bias_attr)
        if convolutions:
            self.value_convolution = DepthwiseConvolution(hidden_size, center=1.0)
            self.output_convolution = DepthwiseConvolution(hidden_size)
        if output_gate:
            self.gate = Linear(hidden_size, hidden_size, bias_attr=bias_attr)

    def forward(
        self,
        hidden: Tensor,
        rotate: Rotation | None = None,
        key_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Attend within ``hidden``.

        Args:
            hidden: ``[batch, seq, hidden]``.
            rotate: called as ``rotate(x, inverse=False)`` on ``[batch, heads, seq, size]``; None for no rotation.
            key_mask: bool ``[batch, seq]``, False at padding.
            segment_ids: integer ``[batch, seq]`` of packed texts.
            score_bias: added to the scores of softmax attention, broadcast to ``[batch, heads, seq, seq]``; linear
                and window attention have none.

        Returns:
            ``[batch, seq, hidden]``.
        """
        q, k, v, beside, factor = self._project(hidden, key_mask, segment_ids)
        attended = self._attend_natively(q, k, v, rotate, key_mask, segment_ids, score_bias)
        if attended is None:
            attended = self._attend(q, k, v, rotate, key_mask, segment_ids, score_bias)
        return self._merge(attended, beside, factor)

    def _attend_natively(self, q, k, v, rotate, key_mask, segment_ids, score_bias):
        """What :meth:`_attend` gives, or None where no native operator has the options of this layer."""
        if self.placement != "qk":
            return None
        if self.kind == "linear":
            if self.feature_map is not elu_plus_one or segment_ids is not None or isinstance(self.decay, Tensor):
                return None
            options = self.normalizer, self.decay, self.causal
            return native_linear_attention(q, k, v, self.num_heads, rotate, key_mask, *options)
        if self.kind == "window" or score_bias is not None:
            return None
        p = self.dropout.p if self.dropout.training else 0.0
        return native_softmax_attention(q, k, v, self.num_heads, rotate, key_mask, p, segment_ids, self.causal)

    def _attend(self, q, k, v, rotate, key_mask, segment_ids, score_bias):
        """``[batch, seq, hidden]`` -> ``[batch, seq, hidden]``, the heads side by side."""
        q, k, v = self._split_all(q, k, v)
        if self.kind != "linear":
            shared = {"segment_ids": segment_ids, "causal": self.causal, "placement": self.placement}
            attended = self._attend_by_softmax(q, k, v, rotate, key_mask, score_bias, **shared)
        elif self.causal:
            attended = causal_linear_attention(
                q, k, v, rotate, key_mask, segment_ids=segment_ids, **self._linear_options()
            )
        else:
            attended = linear_attention(q, k, v, rotate, key_mask, segment_ids=segment_ids, **self._linear_options())
        return self._join_heads(attended)

    def extend(
        self,
        hidden: Tensor,
        state: KeyValueState | LinearAttentionState | None = None,
        rotate: Rotation | None = None,
        key_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> tuple[Tensor, KeyValueState | LinearAttentionState]:
        """Attend to what ``state`` remembers and to ``hidden``, the tokens that follow it; for causal attention.

        Args:
            hidden: ``[batch, new, hidden]``.
            state: as returned by the call before, None at the start. It is not changed.
            rotate, score_bias: as in :meth:`forward`, but at the positions of the new tokens.
            key_mask: bool ``[batch, seq]`` of all tokens, old and new.

        Returns:
            ``[batch, new, hidden]``, what :meth:`forward` gives for the last tokens of the whole, and the new state.

        Raises:
            ValueError: the layer is not causal.
        """
        if not self.causal:
            raise ValueError("only causal attention continues from a state")
        q, k, v, beside, factor = self._project(hidden)
        q, k, v = self._split_all(q, k, v)
        if self.kind != "linear":
            state, attended = self._extend_softmax(q, k, v, state, rotate, key_mask, score_bias)
        else:
            new_keys = None if key_mask is None else key_mask[:, -k.shape[2] :]
            options = {"state": state, "return_state": True, **self._linear_options()}
            state, attended = causal_linear_attention(q, k, v, rotate, new_keys, **options)
        return self._merge(self._join_heads(attended), beside, factor), state

    def _extend_softmax(self, q, k, v, state, rotate, key_mask, score_bias):
        one_tensor = self.share_kv and ("k" in self.placement) == ("v" in self.placement)
        q, k, v = (rotate_at(place, x, rotate, self.placement) for place, x in zip("qkv", (q, k, v)))
        if state is not None:
            k = paddle.concat([state.keys, k], axis=2)
            v = k if one_tensor else paddle.concat([state.values, v], axis=2)
        new_keys = None if key_mask is None else key_mask[:, -k.shape[2] :]
        attended = self._attend_by_softmax(q, k, v, None, new_keys, score_bias, causal=True)
        if self.kind == "window" and k.shape[2] > self.window:
            k, v = k[:, :, -self.window :].clone(), v[:, :, -self.window :].clone()
        return KeyValueState(k, None if one_tensor else v), rotate_at("o", attended, rotate, self.placement)

    def _attend_by_softmax(self, q, k, v, rotate, key_mask, score_bias, **options):
        """To all tokens or those of the window; ``options`` are others of :func:`softmax_attention`."""
        options |= {"dropout": self.dropout}
        if self.kind == "window":
            return window_attention(q, k, v, self.window, rotate, key_mask, **options)
        return softmax_attention(q, k, v, rotate, key_mask, score_bias=score_bias, **options)

    def _linear_options(self):
        return {
            "feature_map": self.feature_map,
            "normalizer": self.normalizer,
            "placement": self.placement,
            "decay": self.decay,
        }

    def _project(self, hidden, key_mask=None, segment_ids=None):
        """q, k, v ``[batch, seq, hidden]``, and of the same shape what the convolution of v adds to the output and what
        the gate multiplies it by, or None."""
        has_gate = hasattr(self, "gate")
        of_values, of_gate = ([] if self.share_kv else [self.value]), ([self.gate] if has_gate else [])
        query, key, *others = projections(hidden, self.query, self.key, *of_values, *of_gate)
        value = key if self.share_kv else others[0]
        if hasattr(self, "value_convolution"):
            value = F.silu(self.value_convolution(value, key_mask, segment_ids))
        has_beside = hasattr(self, "output_convolution")
        beside = self.output_convolution(value, key_mask, segment_ids) if has_beside else None
        factor = F.silu(others[-1]) if has_gate else None
        return query, key, value, beside, factor

    def _split_all(self, q, k, v):
        """``[batch, heads, seq, head_dim]`` each; v is k where it was."""
        heads = self._split_heads(k)
        return self._split_heads(q), heads, heads if v is k else self._split_heads(v)

    def _split_heads(self, x):
        return x.reshape([*first_two(x), self.num_heads, x.shape[-1] // self.num_heads]).transpose([0, 2, 1, 3])

    def _join_heads(self, x):
        x = x.transpose([0, 2, 1, 3])
        return x.reshape([*first_two(x), x.shape[2] * x.shape[3]])

    def _merge(self, attended, beside, factor):
        """``attended`` with what is ``beside`` it, times the factor of the gate, projected."""
        if beside is not None:
            attended = attended + beside
        if factor is not None:
            attended = attended * factor
        return self.output(attended)
