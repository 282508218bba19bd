"""Replaced-token detection (ELECTRA, arXiv 2003.10555): a small generator fills in the hidden tokens, and the encoder
says of each token whether it is the original."""

import dataclasses

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_rope.layers import Linear
from paddle_rope.roformer import RoFormerForMaskedLM

NARROWER = 4  # the generator than the encoder
DETECTION_WEIGHT = 50.0  # of the loss of detection


class ReplacedTokenDetection(nn.Layer):
    """The encoder of ``masked_lm`` with a generator and a detector, which share its token embedding. Only the encoder
    is kept after training."""

    def __init__(self, masked_lm: RoFormerForMaskedLM) -> None:
        super().__init__()
        config = masked_lm.config
        sizes = ("hidden_size", "intermediate_size", "num_attention_heads")
        smaller = {name: max(1, getattr(config, name) // NARROWER) for name in sizes}
        self.encoder = masked_lm.roformer
        self.generator = RoFormerForMaskedLM(
            dataclasses.replace(config, embedding_size=config.embedding_size, **smaller)
        )
        self.generator.roformer.token_embedding = self.encoder.token_embedding
        self.dense = Linear(config.hidden_size, config.hidden_size, activation=config.hidden_act)
        self.score = Linear(config.hidden_size, 1)

    def forward(self, input_ids: Tensor, labels: Tensor, labeled: Tensor, segment_ids: Tensor, **others: Tensor):
        """(loss, logits) of a batch of masked language modeling; the logits, of each token being a replaced one, are
        ``[batch, seq]``."""
        loss, guesses = self.generator(input_ids, labels=labels, labeled=labeled, segment_ids=segment_ids, **others)
        with paddle.no_grad():
            ids, is_replaced = self._fill_in(input_ids, labels, labeled, guesses)
        scores = self.score(self.dense(self.encoder(ids, segment_ids=segment_ids, **others))).squeeze(-1)
        is_text = (segment_ids >= 0).astype(scores.dtype)
        losses = F.binary_cross_entropy_with_logits(scores, is_replaced.astype(scores.dtype), reduction="none")
        return loss + DETECTION_WEIGHT * (losses * is_text).sum() / is_text.sum(), scores

    def _fill_in(self, input_ids, labels, labeled, guesses):
        """The batch with tokens drawn from the generator's probabilities at the hidden places, and whether each of its
        tokens differs from the original."""
        noise = paddle.uniform(guesses.shape, min=1e-9, max=1.0)
        drawn = (guesses - paddle.log(-paddle.log(noise))).argmax(axis=-1)  # by Gumbel noise
        original = paddle.index_select(labels.reshape([-1]), labeled)
        ids = paddle.scatter(input_ids.reshape([-1]), labeled, drawn).reshape(input_ids.shape)
        differs = (drawn != original).astype("int64")
        is_replaced = paddle.scatter(paddle.zeros([input_ids.size], "int64"), labeled, differs)
        return ids, is_replaced.reshape(input_ids.shape)
