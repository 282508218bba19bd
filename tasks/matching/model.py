"""The matching model: RoFormer that reads two texts as one sequence, or each text by itself."""

from dataclasses import dataclass
from typing import ClassVar

import paddle.nn.functional as F

from paddle_rope.choices import POOLINGS
from paddle_rope.option_kinds import TRUTH, choice, integer, list_of, number, option, shown
from paddle_rope.precision import without_amp
from paddle_rope.roformer import RoFormerModel, RoFormerPretrainedModel, SequenceClassificationConfig
from paddle_rope.roformer.heads import ClassificationHead, pool
from tasks.common.inference import evaluated
from tasks.matching.arguments import ARCHITECTURES, CROSS_ENCODER, SHORTEST
from tasks.matching.examples import TASKS, TRIPLES
from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss


@dataclass
class MatchingConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` with what is scored, and how."""

    architecture: str = option(
        CROSS_ENCODER,
        "`cross_encoder`: a score is a function of [CLS] a [SEP] b [SEP]; `bi_encoder`: it is the cosine of the "
        "vectors of [CLS] a [SEP] and [CLS] b [SEP]",
        choice(*ARCHITECTURES),
    )
    task: str = option("pairs", "what the model was trained for: `pairs`, `grades` or `triples`", choice(*TASKS))
    pooling: str = option(
        "mean", "the vector of a sequence: the `mean` of its tokens or the `first`", choice(*POOLINGS)
    )
    max_tokens: int = option(512, "longest sequence in tokens; longer ones are cut", integer(SHORTEST, 10**9))
    token_type_ids: bool = option(
        False, "a cross-encoder has token type 0 for the first text and 1 for the second", TRUTH
    )
    scale: float = option(20.0, "scale of cosines in the losses", number(1e-6, 1e6))
    threshold: float | None = option(None, "score from which a pair matches; empty: none", number(optional=True))
    grades: list[float] | None = option(
        None, "lowest and highest label of the training data; empty: scores without bounds",
        list_of(number(), 2, optional=True),
    )  # fmt: skip

    model_type: ClassVar[str] = "paddle_rope_matching"
    RENAMED: ClassVar[dict[str, str]] = {"max_length": "max_tokens", "segment_ids": "token_type_ids"}  # version 0.1

    def __post_init__(self):
        self.num_labels, self.id2label = 1, None
        super().__post_init__()
        if self.grades is not None and not (len(self.grades) == 2 and self.grades[0] < self.grades[1]):
            raise ValueError(f"grades must be the lowest and the highest label, got {shown(self.grades)}")
        if self.token_type_ids and self.architecture != CROSS_ENCODER:
            raise ValueError("token_type_ids tell the two texts of a cross_encoder apart; a bi_encoder reads one text")
        if self.token_type_ids and self.type_vocab_size < 2:
            raise ValueError("token_type_ids need a model with token types (type_vocab_size 2); leave them out")

    @property
    def is_cross_encoder(self):
        """Whether two texts are read as one sequence."""
        return self.architecture == CROSS_ENCODER


class MatchingModel(RoFormerPretrainedModel):
    """Scores pairs of texts, or the candidates of triples."""

    config_class = MatchingConfig

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.is_cross_encoder:
            self.head = ClassificationHead(config)
        self.init_weights()

    def represent(self, input_ids, attention_mask, token_type_ids=None):
        """What is known of each sequence by itself.

        Args:
            input_ids: int64 ``[rows, seq]``.
            attention_mask: bool ``[rows, seq]``, False at padding.
            token_type_ids: int64 ``[rows, seq]``, for a model with ``token_type_ids``.

        Returns:
            Of a bi-encoder vectors of length 1, float32 ``[rows, hidden]``; of a cross-encoder logits ``[rows]``.
        """
        hidden = self.roformer(input_ids, attention_mask, token_type_ids)
        pooled = pool(hidden, attention_mask, self.config.pooling)
        if self.config.is_cross_encoder:
            return self.head(pooled).squeeze(-1)
        with without_amp():
            return F.normalize(pooled.astype("float32"), axis=-1)

    def find_representations(self, batch):
        """:meth:`represent` of a batch of arrays, in evaluation mode: a float32 array."""
        return evaluated(self, batch, self.represent).astype("float32").numpy()

    def forward(self, input_ids, attention_mask, token_type_ids=None, labels=None):
        """Score a batch of examples.

        Args:
            input_ids, attention_mask, token_type_ids: as of :meth:`represent`. Each example has several sequences, and
                the rows are the first of all examples, then the second of all, and so on. A pair: (a, b) of a
                cross-encoder, a and b of a bi-encoder. A triple: (A, B), (A, C), and A, B, C.
            labels: ``[batch]``, as of :class:`tasks.matching.examples.Example`.

        Returns:
            Logits or cosines ``[candidates, batch]``, one candidate of a pair and two of a triple; with ``labels`` the
            pair (loss, these).
        """
        config = self.config
        rows = self.represent(input_ids, attention_mask, token_type_ids)
        candidates = 2 if config.task == TRIPLES else 1
        if config.is_cross_encoder:
            scores = rows.reshape([candidates, -1])
        else:
            vectors = rows.reshape([1 + candidates, -1, rows.shape[-1]])
            scores = (vectors[:1] * vectors[1:]).sum(axis=-1)
        if labels is None:
            return scores
        if config.task == TRIPLES:
            scale = 1.0 if config.is_cross_encoder else config.scale
            return ranking_loss(scale * scores[0], scale * scores[1], labels), scores
        if config.is_cross_encoder:
            lowest, highest = config.grades
            return grade_loss(scores[0], (labels - lowest) / (highest - lowest)), scores
        return cosent_loss(scores[0], labels, config.scale), scores
