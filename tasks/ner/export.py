"""Export of NER models. The ONNX graph outputs spans, so its caller does not have to decode logits."""

from pathlib import Path
from typing import Any

import numpy as np
from paddle.static import InputSpec

from paddle_rope.global_pointer.heads import MASKED_LOGIT
from paddle_rope.tasks.common.export.exporter import Exporter
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.ner.arguments import of_types
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from paddle_rope.tasks.ner.features import COLUMNS
from paddle_rope.tasks.ner.lengths import entity_bound
from paddle_rope.tasks.ner.prediction.predictor import ANY_LENGTH, ExportedNerModel, NerPredictor

EXACT = ("feature_embedding.flags.weight", "feature_embedding.projection.weight")
CHECKED_SENTENCES = (*UNSEEN_SENTENCES, "好")


class NerExporter(Exporter):
    """Exports models and ensembles of them; the outputs are logits and, in ONNX, spans."""

    predictor = NerPredictor
    outputs = ExportedNerModel.outputs
    several = True

    def save(self, predictor: Any, folder: Path) -> None:
        if predictor.features is not None:
            predictor.features.save_pretrained(folder)

    def inputs(self, config: Any) -> list[InputSpec | None]:
        inputs = [*super().inputs(config), InputSpec([None, None], "bool", "token_mask")]
        features = config.features or {"tables": {}, "flags": 0}
        columns, flags = sum(COLUMNS[kind] for kind in features["tables"]), features["flags"]
        inputs.append(InputSpec([None, None, columns], "int64", "columns") if columns else None)
        inputs.append(InputSpec([None, None, flags], "bool", "flags") if flags else None)
        return inputs

    def finish(self, model: Any, config: Any) -> None:
        """Add the outputs ``spans``, ``scores`` and ``probabilities`` to an ``onnx.ModelProto`` with the output
        ``logits``, which is ``[batch, types, seq, max_span_length]`` if the model has a ``max_span_length``.

        ``spans`` is int64 ``[spans, 4]``: text in the batch, type number, first token, token after the last one. It has
        the spans of at most ``max_entity_tokens`` tokens with a logit above the threshold of their type, in no
        particular order. ``scores`` float32 ``[spans]`` are their logits, ``probabilities`` sigmoid(score /
        temperature). ``thresholds``, float32 ``[types]``, and ``max_entity_tokens``, int64 ``[1]``, are optional
        inputs.
        """
        from onnx import numpy_helper, parser

        types, banded = len(config.types), config.max_span_length is not None
        distance = "Identity (above_column)" if banded else "Sub (above_column, above_first)"
        last = "Add (first, column)" if banded else "Identity (column)"
        added = parser.parse_graph(_SPANS.format(types=types, distance=distance, last=last))
        for node in added.node:
            node.name = node.output[0]
        most = entity_bound(config.longest_entity)
        constants = {
            "thresholds": np.array(of_types(config.thresholds, types), np.float32),
            "temperatures": np.array(of_types(config.temperatures, types), np.float32),
            "max_entity_tokens": ANY_LENGTH if most is None else np.array([most]),
            "bounds_shape": np.array([types, 1, 1]),
            "of_columns": np.ones(4, np.int64),
            "one": np.ones(1, np.int64),
        }
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
        model.graph.node.extend(added.node)
        model.graph.input.extend(added.input[1:])
        model.graph.output.extend(added.output)
        model.ir_version = max(model.ir_version, 4)  # the first version in which inputs may have defaults

    def exact(self, model: Any) -> list[str]:
        """The few weights of flags and of the projection of word features, for which int8 costs most."""
        weights = [p.name for name, p in model.named_parameters() if name.endswith(EXACT)]
        return ["temperatures", *weights]

    def scores(self, predictor: Any) -> np.ndarray:
        model, texts = predictor.model, [predictor.tokenize(text) for text in CHECKED_SENTENCES]
        batch = pad_spans(texts, model.config.pad_token_id, with_labels=False)
        logits = model.logits(batch) if isinstance(model, ExportedNerModel) else evaluated(model, batch)
        logits = logits if isinstance(logits, (list, tuple)) else [logits]
        return np.maximum(np.concatenate([np.ravel(one) for one in logits]), MASKED_LOGIT / 2)

    def limits(self, config: Any) -> list[str]:
        if not config.features:
            return []
        names = ", ".join(spec.name for spec in self.inputs(config)[3:] if spec)
        return [
            f"word features: only this package's Python makes the inputs {names} of the graph; for other languages "
            "train with --features '', or ask paddle-rope serve"
        ]


# The graph after the logits, in ONNX's text format; the two inputs after ``logits`` have defaults.
_SPANS = """
spans (float[batch, types, seq, columns] logits, float[{types}] thresholds, int64[1] max_entity_tokens)
    => (int64[spans, 4] spans, float[spans] scores, float[spans] probabilities) {{
  bounds = Reshape (thresholds, bounds_shape)
  is_span = Greater (logits, bounds)
  places = NonZero (is_span)
  above = Transpose (places)
  above_text, above_type, above_first, above_column = Split <axis = 1> (above, of_columns)
  distance = {distance}
  tokens = Add (distance, one)
  is_short = LessOrEqual (tokens, max_entity_tokens)
  is_kept = Squeeze (is_short, one)
  found = Compress <axis = 0> (above, is_kept)
  scores = GatherND (logits, found)
  text, type, first, column = Split <axis = 1> (found, of_columns)
  last = {last}
  end = Add (last, one)
  spans = Concat <axis = 1> (text, type, first, end)
  type_of_span = Squeeze (type, one)
  divisors = Gather (temperatures, type_of_span)
  scaled = Div (scores, divisors)
  probabilities = Sigmoid (scaled)
}}"""
