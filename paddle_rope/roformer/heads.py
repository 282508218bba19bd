"""RoFormers with a head: masked language model, causal language model, sequence classification."""

import copy

import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_rope.layers import Dropout, Linear
from paddle_rope.roformer.generation import generate
from paddle_rope.roformer.modeling import (
    ACTIVATION_FUNCTIONS,
    RoFormerModel,
    RoFormerPretrainedModel,
    make_linear,
    make_norm,
)

IGNORED_LABEL = -100


class LanguageModelHead(nn.Layer):
    """Hidden states to scores of the vocabulary, by the token embedding E.

    Version 1: scores = E norm(act(W h + a)) + b. Version 2: scores = E h, after a projection where the sizes of
    embedding and hidden states differ.

    Args:
        config: :class:`RoFormerConfig`.
    """

    def __init__(self, config):
        super().__init__()
        self.activation = None
        if config.version == 1:
            self.dense = Linear(config.hidden_size, config.embedding_size)
            self.activation = ACTIVATION_FUNCTIONS[config.hidden_act]
            self.norm = make_norm(config, config.embedding_size)
            self.bias = self.create_parameter([config.vocab_size], is_bias=True)
        elif config.embedding_size != config.hidden_size:
            self.dense = make_linear(config, config.hidden_size, config.embedding_size)

    def forward(self, hidden, embedding):
        """``hidden`` ``[..., hidden]``, ``embedding`` ``[vocab, embedding]`` -> ``[..., vocab]``."""
        if hasattr(self, "dense"):
            hidden = self.dense(hidden)
        if self.activation is None:
            return paddle.matmul(hidden, embedding, transpose_y=True)
        return paddle.matmul(self.norm(self.activation(hidden)), embedding, transpose_y=True) + self.bias

    def loss(self, hidden, embedding, labels):
        """Mean cross-entropy over the labelled tokens, and the logits of these alone.

        Args:
            hidden: ``[batch, seq, hidden]``.
            embedding: ``[vocab, embedding]``.
            labels: int64 ``[batch, seq]``, -100 where there is nothing to predict.

        Returns:
            (loss, logits ``[labelled, vocab]``), in the order of the batch.

        Raises:
            ValueError: no token is labelled.
        """
        labels = labels.reshape([-1])
        labelled = paddle.nonzero(labels != IGNORED_LABEL).reshape([-1])
        if labelled.shape[0] == 0:
            raise ValueError(f"no token is labelled: all labels are {IGNORED_LABEL}")
        chosen = paddle.index_select(hidden.reshape([-1, hidden.shape[-1]]), labelled)
        logits = self(chosen, embedding)
        return F.cross_entropy(logits, paddle.index_select(labels, labelled)), logits


class RoFormerLanguageModel(RoFormerPretrainedModel):
    """An encoder with a :class:`LanguageModelHead`: what the masked and the causal language model share.

    Args:
        config: :class:`RoFormerConfig`.
    """

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.lm_head = LanguageModelHead(config)

    def forward(
        self, input_ids, attention_mask=None, token_type_ids=None, positions=None, segment_ids=None, labels=None
    ):
        """Score a batch.

        Args:
            input_ids, attention_mask, token_type_ids, positions, segment_ids: as :class:`RoFormerModel`.
            labels: int64 ``[batch, seq]``, the token to predict at each place, -100 where there is nothing to predict.

        Returns:
            Logits ``[batch, seq, vocab]``. With ``labels`` the pair (loss, logits ``[labelled, vocab]``): the mean
            cross-entropy over the labelled tokens, and the logits of these alone, in the order of the batch: the others
            are not computed.

        Raises:
            ValueError: no token is labelled.
        """
        hidden = self.roformer(input_ids, attention_mask, token_type_ids, positions, segment_ids)
        embedding = self.roformer.token_embedding.weight
        if labels is None:
            return self.lm_head(hidden, embedding)
        return self.lm_head.loss(hidden, embedding, labels)


class RoFormerForMaskedLM(RoFormerLanguageModel):
    """Scores of the vocabulary at every token; ``labels`` are the true tokens where ``[MASK]`` or another stands."""


class RoFormerForCausalLM(RoFormerLanguageModel):
    """Scores of the next token, where no token sees a later one; ``labels`` are the tokens that **follow**.

    Args:
        config: :class:`RoFormerConfig`; ``causal`` is taken as True.
    """

    def __init__(self, config):
        if not config.causal:
            config = copy.deepcopy(config)
            config.causal = True
        super().__init__(config)

    def extend(self, input_ids, cache=None, attention_mask=None, token_type_ids=None):
        """As :meth:`RoFormerModel.extend`, but with the last token's logits, ``[batch, vocab]``."""
        hidden, cache = self.roformer.extend(input_ids, cache, attention_mask, token_type_ids)
        return self.lm_head(hidden[:, -1], self.roformer.token_embedding.weight), cache

    def generate(
        self,
        input_ids,
        attention_mask=None,
        max_new_tokens=32,
        temperature=0.0,
        top_p=1.0,
        seed=None,
        eos_token_id=None,
    ):
        """Continue texts token by token, see :func:`~paddle_rope.roformer.generation.generate`."""
        return generate(self, input_ids, attention_mask, max_new_tokens, temperature, top_p, seed, eos_token_id)


class RoFormerForSequenceClassification(RoFormerPretrainedModel):
    """Scores of a text's classes (``config.num_labels``) from its first token or the mean of its tokens.

    logits = V act(W pooled + a) + b, with ``config.classifier_activation``.

    Args:
        config: :class:`RoFormerConfig`.
    """

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        self.classifier = ClassificationHead(config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, positions=None, labels=None):
        """Score a batch.

        Args:
            labels: int64 ``[batch]``, the class of each text.
            input_ids, attention_mask, token_type_ids, positions: as :class:`RoFormerModel`.

        Returns:
            Logits ``[batch, labels]``; with ``labels`` the pair (mean cross-entropy, logits).
        """
        hidden = self.roformer(input_ids, attention_mask, token_type_ids, positions)
        logits = self.classifier(pool(hidden, attention_mask, self.config.pooling))
        return logits if labels is None else (F.cross_entropy(logits, labels), logits)


class ClassificationHead(nn.Layer):
    """``[batch, hidden]`` -> ``[batch, labels]`` by one hidden layer."""

    def __init__(self, config):
        super().__init__()
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.activation = ACTIVATION_FUNCTIONS[config.classifier_activation]
        self.output = Linear(config.hidden_size, config.num_labels)

    def forward(self, pooled):
        return self.output(self.dropout(self.activation(self.dense(self.dropout(pooled)))))


def pool(hidden, attention_mask, pooling):
    """One vector a text: its first token's, or the mean over its tokens.

    Args:
        hidden: ``[batch, seq, hidden]``.
        attention_mask: ``[batch, seq]``, bool or 0/1, 0 at padding; None for no padding.
        pooling: ``"first"`` or ``"mean"``.

    Returns:
        ``[batch, hidden]``. Under left padding the first token is the first that is not padding.
    """
    if attention_mask is None:
        return hidden[:, 0] if pooling == "first" else hidden.mean(axis=1)
    is_token = attention_mask.astype(hidden.dtype)
    if pooling == "first":
        is_token = is_token * (is_token.cumsum(axis=1) == 1).astype(hidden.dtype)
    weights = is_token / paddle.clip(is_token.sum(axis=1, keepdim=True), min=1.0)
    return paddle.matmul(weights.unsqueeze(1), hidden).squeeze(1)
