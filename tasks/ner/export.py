"""How NER models are exported. The ONNX graph ends in spans, so that its caller decodes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paddle import nn
from paddle.static import InputSpec

from paddle_rope.global_pointer import MASKED_LOGIT
from tasks.common.deployment.export import Exporter
from tasks.common.inference import evaluated
from tasks.ner.batching import SpanCollator
from tasks.ner.features import COLUMNS
from tasks.ner.prediction.exported import ExportedNerModel
from tasks.ner.recipe import NerRecipe
from tasks.ner.spans import of_types

EXACT = ("feature_embedding.flags.weight", "feature_embedding.projection.weight")
CHECKED_SENTENCES = (
    "去年10月，雁潭市第二人民医院的护士长陆雨桐在碧洲县举办了健康讲座。",
    "我买了一台平板电脑S9 Pro。",
    "好",
)


class NerExporter(Exporter):
    """Models, and ensembles of them, with logits and, in ONNX, spans as outputs."""

    recipe = NerRecipe
    output = "logits"
    several = True

    def save(self, predictor: Any, folder: Path) -> None:
        if predictor.features is not None:
            predictor.features.save_pretrained(folder, with_dictionary=True)

    def layer(self, model: Any) -> nn.Layer:
        return model

    def inputs(self, config: Any) -> list[InputSpec | None]:
        inputs = [
            InputSpec([None, None], "int64", "input_ids"),
            InputSpec([None, None], "bool", "attention_mask"),
            InputSpec([None, None], "bool", "token_mask"),
        ]
        features = config.features or {"tables": {}, "flags": 0}
        columns, flags = sum(COLUMNS[kind] for kind in features["tables"]), features["flags"]
        inputs.append(InputSpec([None, None, columns], "int64", "columns") if columns else None)
        inputs.append(InputSpec([None, None, flags], "bool", "flags") if flags else None)
        return inputs

    def finish(self, model: Any, config: Any) -> None:
        add_spans(model, len(config.types), config.thresholds, config.temperatures, config.max_span_length is not None)

    def exact(self, model: Any) -> list[str]:
        """The few weights of flags and of the projection of word features: as int8 they cost most."""
        weights = [p.name for name, p in model.named_parameters() if name.endswith(EXACT)]
        return ["temperatures", *weights]

    def scores(self, predictor: Any) -> np.ndarray:
        batch = SpanCollator(predictor.model.config.pad_token_id, with_labels=False)(
            [predictor.tokenize(text) for text in CHECKED_SENTENCES]
        )
        if isinstance(predictor.model, ExportedNerModel):
            logits = predictor.model.graph.run(batch)[0]
        else:
            logits = evaluated(predictor.model, batch).numpy()
        return np.maximum(logits, MASKED_LOGIT / 2)

    def describe(self, config: Any) -> dict[str, str]:
        thresholds = [f"{threshold:.4g}" for threshold in of_types(config.thresholds, len(config.types))]
        return {
            "finds": "named entities as spans of characters, nested ones too"
            if config.allow_overlap
            else "named entities as spans of characters, which do not overlap",
            "types": ", ".join(config.types),
            "thresholds of their logits": thresholds[0] if len(set(thresholds)) == 1 else ", ".join(thresholds),
            "language": "Chinese",
            "word features": ", ".join([*config.features["tables"], *(["flags"] if config.features["flags"] else [])])
            if config.features
            else "none",
            "longest text read at once": f"{config.max_tokens} tokens; longer ones in windows",
        }


def add_spans(
    model: Any, types: int, thresholds: float | Sequence[float], temperatures: float | Sequence[float], banded: bool
) -> None:
    """Add the outputs ``spans``, ``scores`` and ``probabilities`` to a graph with the output ``logits``.

    ``spans`` is int64 ``[spans, 4]``: text of the batch, number of the type, first token, token behind the last one;
    those with a logit above the threshold of their type, in no particular order. ``scores`` float32 ``[spans]`` are
    their logits, ``probabilities`` sigmoid(score / temperature). The thresholds are an input, float32 ``[types]``, that
    need not be given.

    Args:
        model: ``onnx.ModelProto``, changed.
        types: number of types.
        thresholds, temperatures: a number, or one for each type.
        banded: whether the logits are ``[batch, types, seq, max_span_length]``.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph

    def constant(name, value, dtype):
        graph.initializer.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def node(operator, inputs, output, **attributes):
        graph.node.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    constant("thresholds", of_types(thresholds, types), np.float32)
    graph.input.append(helper.make_tensor_value_info("thresholds", TensorProto.FLOAT, [types]))
    model.ir_version = max(model.ir_version, 4)  # from which on an input may have a default
    bounds = node("Reshape", ["thresholds", constant("bounds_shape", [types, 1, 1], np.int64)], "bounds")
    places = node("Transpose", [node("NonZero", [node("Greater", ["logits", bounds], "is_span")], "places")], "found")
    node("GatherND", ["logits", places], "scores")
    columns = ["found_text", "found_type", "found_first", "found_column"]
    splits = constant("found_splits", [1, 1, 1, 1], np.int64)
    graph.node.append(helper.make_node("Split", [places, splits], columns, name="found_columns", axis=1))
    last = node("Add", ["found_first", "found_column"], "found_last") if banded else "found_column"
    end = node("Add", [last, constant("one", [1], np.int64)], "found_end")
    node("Concat", [*columns[:3], end], "spans", axis=1)
    kinds = node("Squeeze", ["found_type", constant("axis_one", [1], np.int64)], "types_of_spans")
    divisors = node("Gather", [constant("temperatures", of_types(temperatures, types), np.float32), kinds], "divisors")
    node("Sigmoid", [node("Div", ["scores", divisors], "scaled_scores")], "probabilities")
    graph.output.extend(
        [
            helper.make_tensor_value_info("spans", TensorProto.INT64, ["spans", 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["spans"]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["spans"]),
        ]
    )
