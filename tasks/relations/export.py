"""Export of relation models. The graph outputs the logits of the three heads."""

from typing import Any

from paddle_rope.tasks.ner.export import NerExporter
from paddle_rope.tasks.relations.prediction import ExportedRelationsModel, RelationsPredictor


class RelationsExporter(NerExporter):
    """Exports models; the outputs are the logits of entities ``[batch, types, seq, seq]``, and of pairs of starts and
    of ends ``[batch, relations, seq, seq]``."""

    predictor = RelationsPredictor
    outputs = ExportedRelationsModel.outputs
    several = False

    def finish(self, model: Any, config: Any) -> None:
        """Add nothing: relations are decoded from the logits."""
