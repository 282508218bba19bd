"""From texts to entities and triples with a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddle_rope.tasks.common.inference import Batch
from paddle_rope.tasks.ner.data.reading import check_labeled
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.metrics import worst_examples
from paddle_rope.tasks.ner.prediction.entity_filter import EntityFilter
from paddle_rope.tasks.ner.prediction.predictor import ExportedNerModel, NerPredictor
from paddle_rope.tasks.ner.reports.printed import print_worst_examples
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
from paddle_rope.tasks.relations.metrics import match_triples, scores_of_model
from paddle_rope.tasks.relations.reports import print_errors, print_scores

OUTPUTS = ("logits", "starts", "ends")  # of an exported graph


class ExportedRelationsModel(ExportedNerModel):
    """The graph of an exported folder as a :class:`~paddle_rope.tasks.relations.model.RelationsModel` for
    prediction."""

    def logits(self, batch: Batch) -> list[Any]:
        """The three outputs of the graph: scores of entities, and of pairs of starts and of ends."""
        names = OUTPUTS if set(OUTPUTS) <= {*self.graph.outputs} else None  # Paddle Inference has them in order
        return self.run(batch, (len(batch["input_ids"]), len(self.config.types), None, None), names)

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

    def evaluate(self, examples: list[Example], title: str, num_examples: int = 5) -> dict[str, Any]:
        """Score predictions on labeled examples, print the scores, the kinds of errors and the ``num_examples`` texts
        with the most errors, and return all of it."""
        check_labeled(examples, title)
        found = self.find([example.text for example in examples])
        scores = {
            **scores_of_model(self.model.config, examples, found),
            "worst_examples": worst_examples(examples, found, num_examples, match_triples),
        }
        print_scores(title, scores)
        print_errors(scores)
        print_reliability(scores["reliability"], "triples")
        print_worst_examples(scores["worst_examples"])
        return scores
