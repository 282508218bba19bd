"""The matching model: RoFormer that reads two texts as one sequence, or each text by itself."""

import paddle.nn.functional as F

from paddle_rope.choices import check_choice
from paddle_rope.option_kinds import TRUTH, check_kinds, integer, list_of, number, shown
from paddle_rope.precision import without_amp
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.heads import ClassificationHead, pool
from tasks.common.inference import evaluated
from tasks.matching.arguments import ARCHITECTURES, CROSS_ENCODER, SHORTEST
from tasks.matching.examples import TASKS, TRIPLES
from tasks.matching.losses import cosent_loss, grade_loss, ranking_loss

_KINDS = {
    "max_tokens": integer(SHORTEST, 10**9),
    "token_type_ids": TRUTH,
    "scale": number(1e-6, 1e6),
    "threshold": number(optional=True),
    "grades": list_of(number(), 2, optional=True),
}


class MatchingConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with what is scored, and how.

    Args:
        architecture: ``"cross_encoder"``: a score is a function of ``[CLS] a [SEP] b [SEP]``; ``"bi_encoder"``: it is
            the cosine of the vectors of ``[CLS] a [SEP]`` and ``[CLS] b [SEP]``.
        task: ``"pairs"``, ``"grades"`` or ``"triples"``, what the model was trained for.
        pooling: the vector of a sequence: ``"mean"`` over its tokens or its ``"first"``.
        max_tokens: longest sequence in tokens; what is longer is cut, see :mod:`tasks.matching.batching`.
        token_type_ids: whether a cross-encoder has token type 0 for the first text and 1 for the second; else 0
            for both.
        scale: of cosines in the losses.
        threshold: score from which a pair matches; None for a model that says no such thing.
        grades: lowest and highest label of the training data, between which the scores of a cross-encoder lie; None for
            scores without bounds, which only mean something beside each other.

    Raises:
        ValueError: a name is unknown, a number is out of range, or token types are wanted that the model has not.
    """

    model_type = "paddle_rope_matching"

    def __init__(
        self,
        architecture=CROSS_ENCODER,
        task="pairs",
        pooling="mean",
        max_tokens=None,
        token_type_ids=None,
        scale=20.0,
        threshold=None,
        grades=None,
        **kwargs,
    ):
        # their names in models of version 0.1
        max_length, segment_ids = kwargs.pop("max_length", 512), kwargs.pop("segment_ids", False)
        max_tokens = max_length if max_tokens is None else max_tokens
        token_type_ids = segment_ids if token_type_ids is None else token_type_ids
        super().__init__(pooling=pooling, **{**kwargs, "num_labels": 1})
        check_choice("architecture", architecture, ARCHITECTURES)
        check_choice("task", task, TASKS)
        check_kinds(_KINDS, dict(zip(_KINDS, (max_tokens, token_type_ids, scale, threshold, grades))))
        if grades is not None and not (len(grades) == 2 and grades[0] < grades[1]):
            raise ValueError(f"grades must be the lowest and the highest label, got {shown(grades)}")
        if token_type_ids and architecture != CROSS_ENCODER:
            raise ValueError("token_type_ids tell the two texts of a cross_encoder apart; a bi_encoder reads one text")
        if token_type_ids and self.type_vocab_size < 2:
            raise ValueError("token_type_ids need a model with token types (type_vocab_size 2); leave them out")
        self.architecture = architecture
        self.task = task
        self.max_tokens = max_tokens
        self.token_type_ids = token_type_ids
        self.scale = scale
        self.threshold = threshold
        self.grades = None if grades is None else list(grades)

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
