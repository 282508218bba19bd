"""Exported NER models for prediction. Without paddle, unless the graph is one of Paddle Inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_rope.global_pointer.decoding import ScoredSpan, decode_spans
from tasks.common.export.model import ExportedModel
from tasks.common.inference import Batch
from tasks.ner.config import NerConfig, of_types, scores_of_text

ANY_LENGTH = np.array([np.iinfo(np.int64).max])  # for the graph: predictors have a bound of their own


class ExportedNerModel(ExportedModel):
    """The graph of an exported folder as a :class:`~tasks.ner.model.NerModel` for prediction."""

    config_class = NerConfig

    def scores_of_text(self, length: int) -> int:
        """How many scores a text of ``length`` tokens has."""
        return scores_of_text(self.config, length)

    def find_spans(self, batch: Batch, thresholds: float | Sequence[float] | None = None) -> list[list[ScoredSpan]]:
        """As :meth:`tasks.ner.model.NerModel.find_spans`, in whatever order. An ONNX graph finds the spans itself."""
        thresholds = self.config.thresholds if thresholds is None else thresholds
        types = len(self.config.types)
        if "spans" not in self.graph.outputs:
            (logits,) = self.run(batch, (len(batch["input_ids"]), types, None, None))
            return decode_spans(logits, thresholds, self.config.max_span_length is not None)
        bounds = np.array(of_types(thresholds, types), dtype=np.float32)
        given = {**batch, "thresholds": bounds, "max_entity_tokens": ANY_LENGTH}
        found, scores = self.run(given, (None, 4), ("spans", "scores"))
        spans: list[list[ScoredSpan]] = [[] for _ in batch["input_ids"]]
        for (text, kind, start, end), score in zip(found.tolist(), scores.tolist()):
            spans[text].append(ScoredSpan(start, end, kind, score))
        return spans
