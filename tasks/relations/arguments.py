"""The options of the relation model, and the keys of its recipe, in addition to those of NER. Does not need Paddle."""

from dataclasses import dataclass
from typing import ClassVar, Optional

from paddle_rope.options import NAMES, NUMBER, POSITIVE, TRUTH
from paddle_rope.options import option as model_field
from paddle_rope.tasks.common.training.arguments import model_option, option
from paddle_rope.tasks.ner.arguments import NerArguments, NerConfig, NerOptions, by_type


@dataclass
class RelationsConfig(NerConfig):
    """A :class:`NerConfig` with the relations between the entities."""

    relations: list[str] = model_field([], "names of the relations, in the order of the heads' outputs", NAMES)
    relation_rope: bool = model_field(True, "RoPE in the heads of relations; `false` for GPLinker's", TRUTH)
    relation_thresholds: float | list = model_field(
        0.0, "the logit above which a pair is related, one number or one per relation", by_type(NUMBER)
    )
    relation_temperatures: float | list = model_field(
        1.0, "a relation's probability is sigmoid(logit / temperature); one number or one per relation",
        by_type(POSITIVE),
    )  # fmt: skip

    model_type: ClassVar[str] = "paddle_rope_relations"
    _numbers_of: ClassVar = {**NerConfig._numbers_of, "relations": ("relation_thresholds", "relation_temperatures")}

    def scores_of_text(self, tokens: int) -> int:
        """As in :class:`NerConfig`, with the scores of pairs of starts and of ends."""
        return super().scores_of_text(tokens) + 2 * len(self.relations) * tokens**2


@dataclass
class RelationsOptions(NerOptions):
    """The options of a :class:`~paddle_rope.tasks.relations.prediction.RelationsPredictor`, which choose entities: a
    relation is kept with its two entities."""

    AVERAGES = False
    RESULTS = "entities of texts, and relations between them"
    EXAMPLE = {
        "text": "叶老桂在杭州",
        "entities": [
            {"start": 0, "end": 3, "type": "name", "text": "叶老桂", "score": 1.78, "probability": 0.86},
            {"start": 4, "end": 6, "type": "place", "text": "杭州", "score": 2.21, "probability": 0.9},
        ],
        "relations": [{"head": 0, "tail": 1, "type": "at", "score": 1.12, "probability": 0.75}],
    }


@dataclass
class RelationsArguments(NerArguments):
    """Keys of the relations recipe."""

    MODEL = "paddle_rope.tasks.relations.model:RelationsModel"
    SCORES = ("precision", "recall", "f1", "text_f1", "entity_f1")
    UNUSED = ("teacher_files", "keep_types")
    WHY_UNUSED = "a model would mark entities without their relations"

    recipe: str = option("relations", "what is trained")
    train_file: Optional[str] = option(None, "data with labeled entities and relations, in brat, JSON lines and others")
    relation_rope: bool = model_option(RelationsConfig, "relation_rope")
