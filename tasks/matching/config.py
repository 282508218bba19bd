"""The configuration of the matching model. Without paddle."""

from dataclasses import dataclass
from typing import ClassVar

from paddle_rope.options import NUMBER, POOLINGS, TRUTH, choice, integer, list_of, number, option, optional, shown
from paddle_rope.roformer.config import SequenceClassificationConfig

# What is to be learned: whether two texts match, how much they do, which of two texts is closer to a third.
PAIRS, GRADES, TRIPLES = TASKS = ("pairs", "grades", "triples")
CROSS_ENCODER, BI_ENCODER = ARCHITECTURES = ("cross_encoder", "bi_encoder")
SHORTEST = 5  # tokens of a pair: a token of each text, [CLS] and twice [SEP]


@dataclass
class MatchingConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` with what is scored, and how."""

    architecture: str = option(
        CROSS_ENCODER,
        "`cross_encoder` reads both texts as one sequence; `bi_encoder` encodes each, and their cosine is the score",
        choice(*ARCHITECTURES),
    )
    task: str = option("pairs", "what the model was trained for: `pairs`, `grades` or `triples`", choice(*TASKS))
    pooling: str = option("mean", "`mean` of the tokens, or the `first` token", choice(*POOLINGS))
    max_tokens: int = option(512, "longest sequence in tokens; longer ones are cut", integer(SHORTEST, 10**9))
    token_type_ids: bool = option(False, "token type 1 for the second text of a cross-encoder", TRUTH)
    scale: float = option(20.0, "factor of the cosines in a bi-encoder's losses", number(1e-6, 1e6))
    threshold: float | None = option(None, "score from which a pair matches; empty: none", optional(NUMBER))
    grades: list[float] | None = option(
        None, "lowest and highest label of the training data; empty: scores without bounds",
        optional(list_of(NUMBER, 2)),
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
