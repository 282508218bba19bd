"""RoFormer: a transformer encoder with RoPE (arXiv 2104.09864), or another position encoding to compare it with."""

from dataclasses import dataclass, field
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.distributed.fleet.utils import recompute

from paddle_rope.attention.arguments import as_mask, check_length
from paddle_rope.attention.feature_maps import make_feature_map
from paddle_rope.attention.multi_head import MultiHeadAttention
from paddle_rope.backend import length_of, places_along
from paddle_rope.layers import DepthwiseConvolution, Dropout, Embedding, LayerNorm, Linear, RMSNorm, residual_norm
from paddle_rope.positions import LearnedPositionEmbedding, alibi_bias, alibi_slopes, sinusoidal_embedding
from paddle_rope.roformer.config import RoFormerConfig
from paddle_rope.roformer.pretrained import RoFormerPretrainedModel
from paddle_rope.rotary import Rope, RotaryPositionEmbedding
from paddle_rope.rotary_frequencies import frequency_scaling


def make_linear(config: RoFormerConfig, in_features: int, out_features: int, activation: str | None = None) -> Linear:
    """A linear layer, with bias in version 1."""
    return Linear(in_features, out_features, bias_attr=None if config.version == 1 else False, activation=activation)


def make_norm(config: RoFormerConfig, size: int) -> LayerNorm | RMSNorm:
    """Layer norm in version 1, RMS norm in version 2."""
    return LayerNorm(size, config.layer_norm_eps) if config.version == 1 else RMSNorm(config.layer_norm_eps)


class RoFormerBlock(nn.Layer):
    """Layer ``index``, counted from 0: attention, then feed-forward, with normalization after each residual sum.

    With an input convolution c, the block's input x is replaced by x + c(x) (MILA, arXiv 2405.16605).

    >>> block = RoFormerBlock(RoFormerConfig(hidden_size=8, num_attention_heads=2))
    >>> tuple(block(paddle.ones([1, 3, 8])).shape)
    (1, 3, 8)
    """

    def __init__(self, config: RoFormerConfig, index: int = 0) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            config.hidden_size,
            config.num_attention_heads,
            config.layer_attention[index],
            config.attention_probs_dropout_prob,
            placement=config.position_embedding if config.has_rotary else "qk",
            share_kv=config.share_kv,
            num_key_value_heads=config.num_key_value_heads,
            bias=config.version == 1,
            causal=config.causal,
            feature_map=make_feature_map(config.feature_map, config.head_dim, seed=index),
            normalizer=config.normalizer,
            decay=config.decay,
            window=config.attention_window,
            convolutions=config.convolutions,
            output_gate=config.output_gate,
        )
        self.input_convolution = None
        if config.convolutions:
            self.input_convolution = DepthwiseConvolution(config.hidden_size, causal=config.causal)
        self.attention_norm = make_norm(config, config.hidden_size)
        self.feed_forward_in = make_linear(config, config.hidden_size, config.intermediate_size, config.hidden_act)
        self.feed_forward_out = make_linear(config, config.intermediate_size, config.hidden_size)
        self.feed_forward_norm = make_norm(config, config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)

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
        """``[batch, seq, hidden]`` -> the same shape; arguments as in :meth:`MultiHeadAttention.forward`."""
        if self.input_convolution is not None:
            new_keys = key_mask if key_mask is None or cache is None else key_mask[:, -hidden.shape[1] :]
            of_input = None if cache is None else cache.setdefault("input", {})
            hidden = hidden + self.input_convolution(hidden, new_keys, segment_ids, of_input)
        attended = self.attention(hidden, rope, key_mask, segment_ids, score_bias, cu_seqlens, cache)
        hidden = residual_norm(self.attention_norm, hidden, attended, self.dropout)
        inner = self.feed_forward_out(self.feed_forward_in(hidden))
        return residual_norm(self.feed_forward_norm, hidden, inner, self.dropout)


@dataclass
class RoFormerCache:
    """What a causal RoFormer keeps of earlier tokens: empty at the beginning of a text; each call adds its tokens.
    Texts that branch need a ``copy.deepcopy`` each."""

    layers: dict[int, dict[str, Any]] = field(default_factory=dict)
    length: int = 0  # number of tokens, padding included
    key_mask: Tensor | None = None  # bool [batch, length], False at padding; None without padding

    def take_in(self, input_ids: Tensor, new_keys: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Count the tokens that follow, of which ``new_keys`` is the mask. Returns the mask of all tokens, and their
        positions, int64 ``[batch, length]``; both None without padding."""
        earlier, self.length = self.length, self.length + input_ids.shape[1]
        if new_keys is None and self.key_mask is None:
            return None, None
        known = paddle.ones([input_ids.shape[0], earlier], "bool") if self.key_mask is None else self.key_mask
        new_keys = paddle.ones_like(input_ids).astype("bool") if new_keys is None else new_keys
        self.key_mask = paddle.concat([known, new_keys], axis=1)
        return self.key_mask, paddle.clip(self.key_mask.astype("int64").cumsum(axis=1) - 1, min=0)


class RoFormerModel(RoFormerPretrainedModel):
    """The encoder: embeddings, ``num_hidden_layers`` blocks.

    ``enable_recompute = True`` (PaddleNLP's Trainer sets it for ``recompute``) trades time for memory: in training each
    block keeps only its input and is recomputed in the backward pass.

    >>> config = RoFormerConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(RoFormerModel(config)(paddle.to_tensor([[2, 7, 9, 3]])).shape)  # [batch, seq, hidden]
    (1, 4, 8)
    """

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__(config)
        self.token_embedding = Embedding(
            config.vocab_size, config.embedding_size, "input_ids", "; use the tokenizer of this model"
        )
        if config.type_vocab_size:
            self.token_type_embedding = Embedding(config.type_vocab_size, config.embedding_size, "token_type_ids")
        if config.position_embedding == "learned":
            self.position_embedding = LearnedPositionEmbedding(config.learned_positions, config.embedding_size)
        self.embedding_norm = make_norm(config, config.embedding_size)
        if config.embedding_size != config.hidden_size:
            self.embedding_projection = make_linear(config, config.embedding_size, config.hidden_size)
        own_dropout = config.embedding_dropout_prob
        self.dropout = Dropout(config.hidden_dropout_prob if own_dropout is None else own_dropout)
        self.rotary = self.window_rotary = None
        if config.has_rotary:
            arguments = {**(config.rotary or {})}
            arguments["scaling"] = frequency_scaling(arguments.pop("scaling", None))
            window_base = arguments.pop("window_base", None)
            self.rotary = RotaryPositionEmbedding(config.head_dim, **arguments)
            if window_base is not None:
                self.window_rotary = RotaryPositionEmbedding(config.head_dim, **{**arguments, "base": window_base})
        self.blocks = nn.LayerList([RoFormerBlock(config, index) for index in range(config.num_hidden_layers)])
        self.enable_recompute = False
        self.init_weights()

    @paddle.jit.not_to_static  # its rewriting takes longer than tracing
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        positions: Tensor | None = None,
        segment_ids: Tensor | None = None,
        added_embeddings: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        cache: RoFormerCache | None = None,
    ) -> Tensor:
        """Hidden states ``[batch, seq, hidden]`` of a batch; values at padding are meaningless.

        Args:
            input_ids: int64 ``[batch, seq]``, any seq.
            attention_mask: ``[batch, seq]``, bool or 0/1, 0 at padding; by default no padding.
            token_type_ids: int64 ``[batch, seq]``; 0 by default.
            positions: ``[batch, seq]``, by default 0, 1, 2, ...; with left padding, give other positions if more
                than relative positions matter.
            segment_ids: integer ``[batch, seq]``, marks texts packed into one row, which do not attend to each other.
            added_embeddings: float ``[batch, seq, embedding_size]``, added to the embeddings before the normalization.
            cu_seqlens: with ``segment_ids``, for GPU kernels, as in :func:`~paddle_rope.softmax_attention`.
            cache: lets a causal model continue a text: ``input_ids`` and the mask are of the tokens that follow, and
                the result is the same as for the whole text, without gradients. Positions count real tokens only:
                padding, which must be on the left, does not shift them.

        Raises ValueError for no token, and on CPU for an id, a token type or a position without a row in its table.
        """
        states = self._states if cache is None else self._states_without_gradients
        given = attention_mask, token_type_ids, positions, segment_ids, added_embeddings, cu_seqlens
        return states(input_ids, *given, cache)

    def _states(
        self, input_ids, attention_mask, token_type_ids, positions, segment_ids, added_embeddings, cu_seqlens, cache
    ):
        key_mask = as_mask("attention_mask", attention_mask, input_ids.shape[0], input_ids.shape[1])
        key_positions, earlier = positions, 0 if cache is None else cache.length
        if cache is not None:
            key_mask, key_positions = cache.take_in(input_ids, key_mask)
            positions = None if key_positions is None else key_positions[:, earlier:]
        hidden = self._embed(input_ids, token_type_ids, positions, earlier, added_embeddings)
        context = key_mask, segment_ids, self._score_bias(input_ids, positions, key_positions, earlier), cu_seqlens
        rope, near = self._ropes(hidden, positions, earlier)
        for index, block in enumerate(self.blocks):
            own = (near if block.attention.kind == "window" else rope), *context
            if cache is not None:
                hidden = block(hidden, *own, cache=cache.layers.setdefault(index, {}))
            elif self.enable_recompute and self.training:
                hidden = recompute_layer(block, hidden, *own)
            else:
                hidden = block(hidden, *own)
        return hidden

    _states_without_gradients = paddle.no_grad()(_states)

    def _embed(self, input_ids, token_type_ids, positions, earlier, added_embeddings):
        config = self.config
        check_length("input_ids", input_ids)
        hidden = self.token_embedding(input_ids)
        if added_embeddings is not None:
            hidden = hidden + added_embeddings
        if config.type_vocab_size:
            types = paddle.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            hidden = hidden + self.token_type_embedding(types)
        elif token_type_ids is not None:
            raise ValueError("token_type_ids are given to a model without token types (type_vocab_size is 0)")
        if config.position_embedding in ("sinusoidal", "learned"):
            positions = _places(input_ids, earlier, earlier) if positions is None else positions
            if config.position_embedding == "learned":
                hidden = hidden + self.position_embedding(positions)
            else:
                hidden = hidden + sinusoidal_embedding(positions, config.embedding_size).astype(hidden.dtype)
        hidden = self.dropout(self.embedding_norm(hidden))
        return hidden if config.embedding_size == config.hidden_size else self.embedding_projection(hidden)

    def _ropes(self, hidden, positions, earlier):
        """The rotations at ``positions`` for whole texts and for windows; None without RoPE."""
        if self.rotary is None:
            return None, None
        if positions is None:
            positions, offset = places_along(hidden, 1), earlier
        else:
            offset = 0
        dtype = "float64" if hidden.dtype == paddle.float64 else "float32"
        rope = self.rotary.cos_sin(positions, offset, dtype)
        return rope, rope if self.window_rotary is None else self.window_rotary.cos_sin(positions, offset, dtype)

    def _score_bias(self, input_ids, positions, key_positions, earlier):
        """ALiBi between the positions of queries and keys; None without ALiBi."""
        if self.config.position_embedding != "alibi":
            return None
        if key_positions is None:
            positions, key_positions = (_places(input_ids, earlier, first) for first in (earlier, 0))
        return alibi_bias(alibi_slopes(self.config.num_attention_heads), positions, key_positions)


def recompute_layer(layer: nn.Layer, *inputs: Any) -> Tensor:
    """``layer(*inputs)``, whose activations are computed again in the backward pass, with the same dropout. ``inputs``
    are a tensor, then any values, including tuples of tensors; gradients reach the tensors that need one.

    >>> recompute_layer(paddle.nn.Linear(2, 3), paddle.ones([1, 2])).sum().backward()
    """
    flat = paddle.utils.flatten(inputs)  # Paddle looks for tensors that need gradients among the arguments only

    def run(*arguments):
        return layer(*paddle.utils.pack_sequence_as(inputs, list(arguments)))

    if all(x.stop_gradient for x in flat if isinstance(x, Tensor)):
        # Otherwise Paddle computes no gradients for the layer, even if its weights need them.
        flat[0] = flat[0].detach()
        flat[0].stop_gradient = False
    return recompute(run, *flat)


def _places(input_ids, earlier, first):
    """The positions from ``first`` on of tokens that follow ``earlier`` ones: ``[1, earlier + seq - first]``."""
    return paddle.arange(first, earlier + length_of(input_ids, 1)).unsqueeze(0)
