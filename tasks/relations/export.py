"""Export of relation models. The graph outputs the logits of the three heads."""

from typing import Any

import numpy as np

from paddle_rope.global_pointer.heads import MASKED_LOGIT
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.export import CHECKED_SENTENCES, NerExporter
from paddle_rope.tasks.relations.prediction import OUTPUTS, ExportedRelationsModel, RelationsPredictor


class RelationsExporter(NerExporter):
    """Exports models; the outputs are the logits of entities ``[batch, types, seq, seq]``, and of pairs of starts and
    of ends ``[batch, relations, seq, seq]``."""

    predictor = RelationsPredictor
    outputs = OUTPUTS
    several = False

    def finish(self, model: Any, config: Any) -> None:
        """Add nothing: relations are decoded from the logits."""

    def scores(self, predictor: Any) -> np.ndarray:
        model, texts = predictor.model, [predictor.tokenize(text) for text in CHECKED_SENTENCES]
        batch = pad_spans(texts, model.config.pad_token_id, with_labels=False)
        is_exported = isinstance(model, ExportedRelationsModel)
        logits = model.logits(batch) if is_exported else [one.numpy() for one in evaluated(model, batch)]
        return np.maximum(np.concatenate([one.ravel() for one in logits]), MASKED_LOGIT / 2)
