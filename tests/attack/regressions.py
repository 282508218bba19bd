"""Findings of before: those of ``regressions.yaml``, and those that are too large for a file, as what a few lines make.

The YAML has target -> name -> file -> its content, or a list of pieces [text, times].
"""

import json
from pathlib import Path

import yaml

from tests.attack.targets import Case


def _text(content):
    return {"mutant": content.encode("utf-8")}


def _repeated_keys():
    """An object with 30,000 keys of which two are equal: once looked for in quadratic time."""
    keys = [*range(30_000), 29_999]
    return _text('{"text": "ab", "label": {' + ", ".join(f'"{key}": {{}}' for key in keys) + "}}\n")


def _long_surface():
    """One long surface with many spans: each was once written out for a message that nobody sees."""
    surface = "长" * 20_000
    return _text(json.dumps({"text": surface, "label": {"x": {surface: [[0, 19_999]] * 20_000}}}) + "\n")


def _many_records():
    return _text("[" + '{"text": "a", "entities": []},\n' * 30_000 + '{"text": "a", "entities": []}]')


def _graph_that_cannot_be_computed():
    """A graph that multiplies texts of any length with seven numbers."""
    from onnx import TensorProto, helper

    names = ("input_ids", "attention_mask", "token_mask")
    kinds = (TensorProto.INT64, TensorProto.BOOL, TensorProto.BOOL)
    inputs = [helper.make_tensor_value_info(name, kind, ["n", "seq"]) for name, kind in zip(names, kinds)]
    seven = helper.make_tensor("seven", TensorProto.FLOAT, [7], [1.0] * 7)
    cast = helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT)
    multiply = helper.make_node("Mul", ["numbers", "seven"], ["logits"])
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)
    graph = helper.make_graph([cast, multiply], "graph", inputs, [output], [seven])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    return {"model.onnx": model.SerializeToString()}


MADE = {
    "cluener": {"repeated keys": _repeated_keys, "a long surface": _long_surface},
    "jsonl": {"repeated keys": _repeated_keys},
    "stream": {"repeated keys": _repeated_keys},
    "cmeee": {"many records": _many_records},
    "exported_onnx": {"a graph that cannot be computed": _graph_that_cannot_be_computed},
}


KEPT = yaml.safe_load(Path(__file__).with_name("regressions.yaml").read_text(encoding="utf-8"))


def of_target(name: str) -> dict[str, Case]:
    """The cases of a target by their names."""
    cases = {key: make() for key, make in MADE.get(name, {}).items()}
    for key, case in KEPT.get(name, {}).items():
        cases[key] = {path: _content(content) for path, content in case.items()}
    return cases


def _content(content):
    if isinstance(content, list):
        content = "".join(text * times for text, times in content)
    return content if isinstance(content, bytes) else content.encode("utf-8")
