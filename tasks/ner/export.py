"""How NER models are exported. The ONNX graph ends in spans, so that its caller decodes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from paddle.static import InputSpec

from paddle_rope.global_pointer.heads import MASKED_LOGIT
from tasks.common.export.exporter import Exporter
from tasks.common.inference import evaluated
from tasks.ner.batching import SpanCollator
from tasks.ner.config import of_types
from tasks.ner.features import COLUMNS
from tasks.ner.lengths import entity_bound, reading_of
from tasks.ner.prediction.exported import ExportedNerModel
from tasks.ner.recipe import NerRecipe

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

    def inputs(self, config: Any) -> list[InputSpec | None]:
        inputs = [*super().inputs(config), InputSpec([None, None], "bool", "token_mask")]
        features = config.features or {"tables": {}, "flags": 0}
        columns, flags = sum(COLUMNS[kind] for kind in features["tables"]), features["flags"]
        inputs.append(InputSpec([None, None, columns], "int64", "columns") if columns else None)
        inputs.append(InputSpec([None, None, flags], "bool", "flags") if flags else None)
        return inputs

    def finish(self, model: Any, config: Any) -> None:
        add_spans(
            model,
            *(len(config.types), config.thresholds, config.temperatures, config.max_span_length is not None),
            entity_bound(config.longest_entity),
        )

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

    def limits(self, config: Any) -> list[str]:
        if not config.features:
            return []
        names = [spec.name for spec in self.inputs(config)[3:] if spec]
        return [
            (
                f"word features: only this package's Python makes the inputs {', '.join(names)} of the graph; for "
                "other languages train with --features '', or ask paddle-rope serve"
            )
        ]

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
            **_lengths(config),
        }


def _lengths(config: Any) -> dict[str, str]:
    reading = reading_of(config)
    window = f"{reading.max_tokens} tokens; longer ones in windows that share {reading.overlap + 1}"
    lines = {"longest text read at once": window}
    if config.longest_text is not None:
        lines["longest training text"] = f"{config.longest_text} tokens"
    if config.longest_entity is not None:
        bound = f"longer spans than {reading.max_entity_tokens} are not found"
        lines["longest training entity"] = f"{config.longest_entity} tokens; {bound}"
    return lines


def add_spans(
    model: Any,
    types: int,
    thresholds: float | Sequence[float],
    temperatures: float | Sequence[float],
    banded: bool,
    max_entity_tokens: int | None = None,
) -> None:
    """Add the outputs ``spans``, ``scores`` and ``probabilities`` to a graph with the output ``logits``.

    ``spans`` is int64 ``[spans, 4]``: text of the batch, number of the type, first token, token behind the last one;
    those with a logit above the threshold of their type and of at most ``max_entity_tokens`` tokens, in no particular
    order. ``scores`` float32 ``[spans]`` are their logits, ``probabilities`` sigmoid(score / temperature). The
    thresholds, float32 ``[types]``, and the bound ``max_entity_tokens``, int64 ``[1]``, are inputs that need not be
    given.

    Args:
        model: ``onnx.ModelProto``, changed.
        types: number of types.
        thresholds, temperatures: a number, or one for each type.
        banded: whether the logits are ``[batch, types, seq, max_span_length]``.
        max_entity_tokens: the default of that input; None for any length.
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
    constant("max_entity_tokens", [max_entity_tokens or np.iinfo(np.int64).max], np.int64)
    graph.input.append(helper.make_tensor_value_info("thresholds", TensorProto.FLOAT, [types]))
    graph.input.append(helper.make_tensor_value_info("max_entity_tokens", TensorProto.INT64, [1]))
    model.ir_version = max(model.ir_version, 4)  # from which on an input may have a default
    bounds = node("Reshape", ["thresholds", constant("bounds_shape", [types, 1, 1], np.int64)], "bounds")
    places = node("Transpose", [node("NonZero", [node("Greater", ["logits", bounds], "is_span")], "places")], "above")
    splits, one = constant("found_splits", [1, 1, 1, 1], np.int64), constant("one", [1], np.int64)

    def columns_of(places, name):
        columns = [f"{name}_{part}" for part in ("text", "type", "first", "column")]
        graph.node.append(helper.make_node("Split", [places, splits], columns, name=f"{name}_columns", axis=1))
        return columns

    *_, first, column = columns_of(places, "above")
    tokens = node("Add", [column if banded else node("Sub", [column, first], "above_distance"), one], "above_tokens")
    is_short = node("LessOrEqual", [tokens, "max_entity_tokens"], "is_short")
    is_kept = node("Squeeze", [is_short, constant("axis_one", [1], np.int64)], "is_kept")
    places = node("Compress", [places, is_kept], "found", axis=0)
    node("GatherND", ["logits", places], "scores")
    *columns, column = columns_of(places, "found")
    last = node("Add", [columns[-1], column], "found_last") if banded else column
    node("Concat", [*columns, node("Add", [last, one], "found_end")], "spans", axis=1)
    kinds = node("Squeeze", ["found_type", "axis_one"], "types_of_spans")
    divisors = node("Gather", [constant("temperatures", of_types(temperatures, types), np.float32), kinds], "divisors")
    node("Sigmoid", [node("Div", ["scores", divisors], "scaled_scores")], "probabilities")
    graph.output.extend(
        [
            helper.make_tensor_value_info("spans", TensorProto.INT64, ["spans", 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["spans"]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["spans"]),
        ]
    )
