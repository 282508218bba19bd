"""From texts to entities and triples with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paddle_rope.tasks.common.inference import Batch
from paddle_rope.tasks.common.reports.tables import print_score_rows
from paddle_rope.tasks.ner.metrics import worst_examples
from paddle_rope.tasks.ner.prediction.entity_filter import EntityFilter
from paddle_rope.tasks.ner.prediction.predictor import ExportedNerModel, NerPredictor
from paddle_rope.tasks.ner.reports import printed
from paddle_rope.tasks.ner.reports.reliability import print_reliability
from paddle_rope.tasks.relations.arguments import RelationsArguments, RelationsConfig, RelationsOptions
from paddle_rope.tasks.relations.decoding import (
    RELATED,
    LinkedSpans,
    Related,
    all_scored,
    between,
    linked_spans,
    related_record,
)
from paddle_rope.tasks.relations.metrics import MEANINGS, match_triples, relation_scores


class ExportedRelationsModel(ExportedNerModel):
    """The graph of an exported folder as a :class:`~paddle_rope.tasks.relations.model.RelationsModel` for
    prediction."""

    outputs = ("logits", "starts", "ends")

    def find_spans(
        self, batch: Batch, thresholds: float | Sequence[float], most: int | None = None
    ) -> list[LinkedSpans]:
        entities, *of_pairs = self.logits(batch)
        sizes = batch["token_mask"].sum(axis=1)
        return linked_spans(self.config, entities, thresholds, most, sizes, all_scored(*of_pairs))


class RelationsPredictor(NerPredictor):
    """Finds entities and the relations between them. Threads may share it. It takes the arguments and raises the
    errors of :class:`~paddle_rope.tasks.ner.prediction.predictor.NerPredictor`, with one model.

    A record of NER also has ``"relations": [{"head": 0, "tail": 1, "type": ..., "score": ..., "probability":
    ...}]``: the head and the tail are places in the list of entities, and the score is the lower one of the logits of
    both starts and of both ends. A relation is kept with its two entities, so filters of entities filter relations.
    """

    arguments = RelationsArguments
    config_class = RelationsConfig
    options_class = RelationsOptions
    exported_class = ExportedRelationsModel
    decoding = RELATED

    def record(self, text: str, found: Related) -> dict:
        return related_record(text, found)

    def kept(self, text: str, found: Related, entity_filter: EntityFilter) -> Related:
        return between(super().kept(text, found.entities, entity_filter), found.triples)

    _worst = staticmethod(partial(worst_examples, match=match_triples))

    def _scores(self, examples, found):
        return relation_scores(self.model.config, examples, found)

    def _print(self, title, scores):
        print_scores(title, scores)
        printed.print_kinds(scores["errors"], MEANINGS)
        print_reliability(scores["reliability"], "triples")


def print_scores(title: str, scores: dict) -> None:
    """Print the result of :func:`~paddle_rope.tasks.relations.metrics.relation_scores` as two tables: a row for each
    relation and one for all, then what is counted in other ways."""
    printed.print_scores(title, scores)
    rows = ("triples by text, as DuIE counts", scores["by_text"]), ("entities", scores["entities"])
    print_score_rows(f"{title}, counted otherwise", "what", rows)
