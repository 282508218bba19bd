"""RoFormers with a head: masked language model, causal language model with generation, sequence classification."""

import dataclasses

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_rope.attention.arguments import as_mask
from paddle_rope.layers import Dropout, Linear, linear
from paddle_rope.native.products import are_rounded
from paddle_rope.roformer.config import RoFormerConfig, SequenceClassificationConfig
from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel, make_linear, make_norm
from paddle_rope.roformer.pretrained import RoFormerPretrainedModel

IGNORED_LABEL = -100


class LanguageModelHead(nn.Layer):
    """Map hidden states to scores over the vocabulary, with the token embedding E.

    Version 1: scores = E norm(act(W h + a)) + b. Version 2: scores = E h, after a projection if the sizes differ.

    >>> head = LanguageModelHead(RoFormerConfig(vocab_size=20, hidden_size=8, num_attention_heads=2))
    >>> tuple(head(paddle.ones([1, 3, 8]), paddle.ones([20, 8])).shape)  # [batch, seq, vocab]
    (1, 3, 20)
    """

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__()
        self.dense = self.norm = self.bias = None
        if config.version == 1:
            self.dense = Linear(config.hidden_size, config.embedding_size, activation=config.hidden_act)
            self.norm = make_norm(config, config.embedding_size)
            self.bias = self.create_parameter([config.vocab_size], is_bias=True)
        elif config.embedding_size != config.hidden_size:
            self.dense = make_linear(config, config.hidden_size, config.embedding_size)

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """``hidden`` ``[..., hidden]``, ``embedding`` ``[vocab, embedding]`` -> ``[..., vocab]``."""
        if self.dense is not None:
            hidden = self.dense(hidden)
        if self.norm is not None:
            hidden = self.norm(hidden)
        if are_rounded():  # copying the embedding costs far less time than a bfloat16 product saves
            return linear(hidden, embedding.t(), self.bias)
        scores = paddle.matmul(hidden, embedding, transpose_y=True)
        return scores if self.bias is None else scores + self.bias

    def loss(
        self, hidden: Tensor, embedding: Tensor, labels: Tensor, labeled: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As :meth:`RoFormerLanguageModel.forward` with ``labels``; ``embedding`` is ``[vocab, embedding]``."""
        labels = labels.reshape([-1])
        if labeled is None:  # nonzero makes the host wait for the number of labeled tokens
            labeled = paddle.nonzero(labels != IGNORED_LABEL).reshape([-1])
        if labeled.shape[0] == 0:
            raise ValueError(f"no token is labeled: all labels are {IGNORED_LABEL}")
        chosen = paddle.index_select(hidden.reshape([-1, hidden.shape[-1]]), labeled)
        logits = self(chosen, embedding)
        return _mean_cross_entropy(logits, paddle.index_select(labels, labeled)), logits


def _mean_cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none").mean()  # Paddle 2's own mean waits for the device


class RoFormerLanguageModel(RoFormerPretrainedModel):
    """An encoder with a :class:`LanguageModelHead`: the base of the masked and the causal language model."""

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.lm_head = LanguageModelHead(config)
        self.init_weights()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        positions: Tensor | None = None,
        segment_ids: Tensor | None = None,
        labels: Tensor | None = None,
        labeled: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        cache: RoFormerCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Logits ``[batch, seq, vocab]``; arguments except ``labels``, ``labeled`` as in :meth:`RoFormerModel.forward`.

        With a ``cache``, they are of the last token only, ``[batch, 1, vocab]``.

        ``labels``, int64 ``[batch, seq]``, has the token to predict at each place, or -100. With it, the result is the
        pair (mean cross-entropy over the labeled tokens, their logits ``[labeled, vocab]`` in batch order).
        ``labeled``, int64 ``[labeled]``, has the indices of these tokens in the flattened batch, so that nothing waits
        for a GPU. Raises ValueError if no token is labeled.
        """
        others = {"segment_ids": segment_ids, "cu_seqlens": cu_seqlens, "cache": cache}
        hidden = self.roformer(input_ids, attention_mask, token_type_ids, positions, **others)
        embedding = self.roformer.token_embedding.weight
        if labels is None:
            return self.lm_head(hidden if cache is None else hidden[:, -1:], embedding)
        return self.lm_head.loss(hidden, embedding, labels, labeled)


class RoFormerForMaskedLM(RoFormerLanguageModel):
    """Scores over the vocabulary at every token; ``labels`` are the true tokens at masked or replaced places.

    >>> config = RoFormerConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> ids, labels = paddle.to_tensor([[2, 4, 9, 3]]), paddle.to_tensor([[-100, 7, -100, -100]])
    >>> loss, logits = RoFormerForMaskedLM(config)(ids, labels=labels)
    >>> tuple(logits.shape)  # of the labeled token
    (1, 20)
    """


def _choose(logits, temperature, top_p, random):
    """A token for each row of ``logits`` ``[batch, vocab]``: int64 ``[batch]``, on their device."""
    if temperature == 0:
        return logits.argmax(axis=-1)
    probabilities = F.softmax(logits.astype("float64") / temperature, axis=-1)
    if top_p < 1:
        places = paddle.arange(logits.shape[1]).astype("float64")  # of two that are equal, the first
        order = paddle.argsort(places * 1e-18 - probabilities, axis=-1)
        best = paddle.take_along_axis(probabilities, order, axis=-1)
        best = best * (best.cumsum(axis=-1) - best < top_p).astype("float64")
        probabilities = paddle.put_along_axis(paddle.zeros_like(best), order, best, axis=-1)
        probabilities = probabilities / probabilities.sum(axis=-1, keepdim=True)
    uniform = paddle.to_tensor(random.random([logits.shape[0], 1]))
    return (probabilities.cumsum(axis=-1) <= uniform).astype("int64").sum(axis=-1)


class RoFormerForCausalLM(RoFormerLanguageModel):
    """Scores of the next token, from earlier tokens only. ``labels`` are the tokens that **follow**. The option
    ``causal`` is set to True.

    >>> config = RoFormerConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(RoFormerForCausalLM(config).generate(paddle.to_tensor([[2, 7, 9]]), max_new_tokens=5).shape)
    (1, 5)
    """

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__(config if config.causal else dataclasses.replace(config, causal=True))

    @paddle.no_grad()
    def generate(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        eos_token_id: int | None = None,
    ) -> Tensor:
        """Continue texts, token by token from a cache, which does not grow with linear attention. Dropout acts in
        training mode.

        Args:
            input_ids: int64 ``[batch, seq]``; shorter texts are padded on the left, otherwise ValueError.
            attention_mask: ``[batch, seq]``, 0 at padding; by default no padding.
            max_new_tokens: number of tokens to add, at least 1.
            temperature: 0 takes the best token each time, others draw tokens from softmax(logits / temperature).
            top_p: draw among the fewest best tokens that hold this share of the probability, in (0, 1].
            seed: of the random draws; None for fresh entropy from numpy.
            eos_token_id: a text ends after this token, the rest is ``pad_token_id``; None never ends a text early.

        Returns:
            The new tokens, int64 ``[batch, new]``, with ``new`` at most ``max_new_tokens``.

        >>> model = RoFormerForCausalLM(RoFormerConfig(20, 8, num_hidden_layers=1, num_attention_heads=2))
        >>> tuple(model.generate(paddle.to_tensor([[2, 7]]), max_new_tokens=3, temperature=1, seed=1).shape)
        (1, 3)
        """
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
        if not (temperature >= 0 and 0 < top_p <= 1):
            raise ValueError(f"temperature must be 0 or more and top_p in (0, 1], got {temperature} and {top_p}")
        attention_mask = as_mask("attention_mask", attention_mask, input_ids.shape[0], input_ids.shape[1])
        if attention_mask is not None and not bool(attention_mask[:, -1].all()):
            raise ValueError("the last token of each text must be real: pad on the left")
        random, cache, tokens = np.random.default_rng(seed), RoFormerCache(), []
        ended = paddle.zeros([input_ids.shape[0]], "bool")
        while True:
            logits = self(input_ids, attention_mask, cache=cache)[:, -1]
            token = _choose(logits, temperature, top_p, random)
            if eos_token_id is not None:
                token = paddle.where(ended, paddle.full_like(token, self.config.pad_token_id), token)
                ended = paddle.logical_or(ended, token == eos_token_id)
            tokens.append(token)
            if len(tokens) >= max_new_tokens or (eos_token_id is not None and bool(ended.all())):
                return paddle.stack(tokens, axis=1)
            input_ids, attention_mask = token.unsqueeze(1), None


class RoFormerForSequenceClassification(RoFormerPretrainedModel):
    """Class scores of a text, from its first token or the mean of its tokens: V act(W pooled + a) + b, where act is
    ``config.classifier_activation``.

    >>> sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> model = RoFormerForSequenceClassification(SequenceClassificationConfig(**sizes, num_labels=3))
    >>> tuple(model(paddle.to_tensor([[2, 7, 9, 3]])).shape)  # [batch, labels]
    (1, 3)
    """

    config_class = SequenceClassificationConfig
    config: SequenceClassificationConfig

    def __init__(self, config: SequenceClassificationConfig) -> None:
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.classifier = ClassificationHead(config)
        self.init_weights()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        positions: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Logits ``[batch, labels]``; with ``labels``, int64 ``[batch]``, the pair (mean cross-entropy, logits).

        The other arguments are as in :meth:`RoFormerModel.forward`.
        """
        hidden = self.roformer(input_ids, attention_mask, token_type_ids, positions)
        logits = self.classifier(pool(hidden, attention_mask, self.config.pooling))
        return logits if labels is None else (_mean_cross_entropy(logits, labels), logits)


class ClassificationHead(nn.Layer):
    """``[batch, hidden]`` -> ``[batch, labels]`` through one hidden layer."""

    def __init__(self, config: SequenceClassificationConfig) -> None:
        super().__init__()
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.dense = Linear(config.hidden_size, config.hidden_size, activation=config.classifier_activation)
        self.output = Linear(config.hidden_size, len(config.id2label))

    def forward(self, pooled: Tensor) -> Tensor:
        return self.output(self.dropout(self.dense(self.dropout(pooled))))


def pool(hidden: Tensor, attention_mask: Tensor | None, pooling: str) -> Tensor:
    """``[batch, seq, hidden]`` -> ``[batch, hidden]``: the ``"first"`` token, or the ``"mean"`` over all
    tokens, without padding.

    ``attention_mask`` is ``[batch, seq]``, bool or 0/1, 0 at padding; None for no padding.
    """
    if attention_mask is None:
        return hidden[:, 0] if pooling == "first" else hidden.mean(axis=1)
    is_token = attention_mask.astype(hidden.dtype)
    if pooling == "first":
        is_token = is_token * (is_token.cumsum(axis=1) == 1).astype(hidden.dtype)
    weights = is_token / paddle.clip(is_token.sum(axis=1, keepdim=True), min=1.0)
    return paddle.matmul(weights.unsqueeze(1), hidden).squeeze(1)
