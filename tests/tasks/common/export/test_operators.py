"""The operators of graphs: all exported models pass, other operators never reach an engine; failing graphs."""

import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import paddle
import pytest
import yaml

from paddle_rope import options as choices
from paddle_rope.roformer import SequenceClassificationConfig
from paddle_rope.tasks.classification.model import ClassificationConfig, ClassificationModel
from paddle_rope.tasks.classification.recipe import ClassificationExporter
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.export import exporter as exporting
from paddle_rope.tasks.common.export.model import ExportedModel
from paddle_rope.tasks.common.export.operators import OPERATORS, check_operators, message_class, operators_of
from paddle_rope.tasks.matching.model import MatchingConfig, MatchingModel
from paddle_rope.tasks.matching.recipe import MatchingExporter
from paddle_rope.tasks.ner.export import NerExporter
from paddle_rope.tasks.ner.model import NerConfig, NerModel

IS_PADDLE_2 = paddle.__version__.startswith("2.")
QUANTIZED = (0, 2, 5)
EARLIER = {"0.t_ui8", "1.dropout", "dropout", "Cos"}  # of graphs that were exported before

SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
CLASSES = {  # recipe -> exporter, classes of the model and of its configuration, more options
    "ner": (NerExporter, NerModel, NerConfig, {"types": ["a", "b"], "head_size": 8}),
    "classification": (ClassificationExporter, ClassificationModel, ClassificationConfig, {"classes": ["a", "b"]}),
    "matching": (MatchingExporter, MatchingModel, MatchingConfig, {}),
}
KINDS = yaml.safe_load(Path(__file__).with_name("kinds.yaml").read_text(encoding="utf-8"))
ALL_KINDS = [  # (exporter, class of the model, its configuration)
    (exporter, model, config(**{**SIZES, **more, **options}))
    for recipe, (exporter, model, config, more) in CLASSES.items()
    for options in KINDS[recipe]
]


def test_every_option_that_changes_a_graph_is_among_the_kinds():
    configs = [config for *_, config in ALL_KINDS]
    assert {kind for config in configs for kind in config.layer_attention} == set(choices.ATTENTION_KINDS)
    for name, values in (
        ("feature_map", choices.FEATURE_MAPS), ("hidden_act", choices.ACTIVATIONS), ("normalizer", choices.NORMALIZERS),
        ("position_embedding", {*choices.POSITION_EMBEDDINGS} - {*choices.PLACEMENTS} | {"qk", "qkvo", "o"}),
        ("convolutions", {True, False}),
    ):  # fmt: skip
        assert {getattr(config, name) for config in configs} >= set(values), name
    assert any((config.rotary or {}).get("layout") == "half" for config in configs)
    poolings = {config.pooling for config in configs if isinstance(config, SequenceClassificationConfig)}
    assert poolings == set(choices.POOLINGS)


@pytest.mark.slow
def test_the_list_is_that_of_the_operators_of_exported_models(tmp_path, monkeypatch):
    held, convert, quantize = {}, exporting._converted, exporting._quantize

    def take(graph):
        check_operators(graph)
        held.setdefault(graph.suffix, set()).update(operators_of(graph))

    # the graphs on the way to the last one: Paddle's, and the one that becomes int8
    monkeypatch.setattr(exporting, "_converted", lambda folder: take(folder / "inference.json") or convert(folder))
    monkeypatch.setattr(exporting, "_quantize", lambda plain, *more: take(plain) or quantize(plain, *more))
    format = "paddle" if IS_PADDLE_2 else "onnx"
    for number, (exporter, model_class, config) in enumerate(ALL_KINDS):
        (folder := tmp_path / str(number)).mkdir()
        exporter().write_graph(model_class(config), folder, format, number in QUANTIZED and not IS_PADDLE_2)
        take(next(path for path in folder.iterdir() if path.suffix in OPERATORS))
    assert held.keys() == ({".pdmodel"} if IS_PADDLE_2 else {".onnx", ".json"})
    for suffix, names in held.items():
        assert names <= OPERATORS[suffix] and OPERATORS[suffix] - names <= EARLIER, suffix


def written(suffix, **content):
    return message_class(suffix)(**content).SerializeToString()


def onnx(*nodes, **more):
    """A model of nodes: names of operators, or their parts; ``more`` is in its graph."""
    nodes = [{"operator": [node]} if isinstance(node, bytes) else node for node in nodes]
    return written(".onnx", graph=[{"node": nodes, **more}])


def with_attribute(**content):
    return onnx({"operator": [b"Relu"], "attribute": [content]})


def program(*operators, variables=()):
    """A program of Paddle 2: names of operators, or (name, inputs, outputs)."""
    parts = [(one, [], []) if isinstance(one, bytes) else one for one in operators]
    block = [
        {"operator": [name], "inputs": [{"names": inputs}], "outputs": [{"names": outputs}]}
        for name, inputs, outputs in parts
    ]
    blocks = [{"operators": block, "variables": [{"name": [name]} for name in variables]}]
    return written(".pdmodel", blocks=blocks)


OPERANDS = {"A": [], "I": [], "O": [], "OA": []}
SAVE = {"#": "1.save", **OPERANDS}


def paddle_3(*operators, **more):
    blocks = [{"#": "block_0", "args": [], "ops": [*operators]}]
    return json.dumps({"program": {"regions": [{"#": "region_0", "blocks": blocks}], **more}})


NESTED = {"node": [{"operator": [b"Relu"]}]}
for _ in range(40):  # engines read no more than 100 messages within each other
    NESTED = {"node": [{"operator": [b"Relu"], "attribute": [{"graph": [NESTED]}]}]}
BROKEN, EXTERNAL = "is no graph", "holds '<external data"
FOREIGN = {
    "blocks.pdmodel": (program(b"relu") + program(b"save"), "holds 'save'"),
    "three.pdmodel": (program(b"print", b"py_func", b"run_program"), "holds 'print' and 2 more, which no exported"),
    "twice.pdmodel": (b'\n\x0e"\x0c\x1a\x04save\x1a\x04relu', "holds 'save'"),
    "number.pdmodel": (b"\x08\x05", BROKEN),  # a number in place of a block
    "empty.pdmodel": (b"", BROKEN),
    "longer.pdmodel": (b"\n\x04abc", BROKEN),
    "long.pdmodel": (program(b"\x1b[31m\xff" + b"x" * 100_000), r"holds '\\x1b\[31m"),
    "fetch.pdmodel": (program((b"fetch", [b"b"], [b"a"]), variables=[b"a"]), "fetch names 'b', which is no variable"),
    "outputs.pdmodel": (program((b"relu", [b"a"], [b"b"]), variables=[b"a"]), "relu names 'b', which is no variable"),
    "feed.pdmodel": (program((b"feed", [], [b"a"]), variables=[b"a"]), "feed has no operand"),
    "no_output.pdmodel": (program((b"relu", [b"a"], []), variables=[b"a"]), "relu has no output"),
    "inner.json": (paddle_3({"#": "1.relu", **OPERANDS, "regions": [{"blocks": [{"ops": [SAVE]}]}]}), "holds '1.save'"),
    "operands.json": (paddle_3({"#": "1.relu", "A": [], "O": [], "OA": []}), "holds '<1.relu without operands>'"),
    "beside.json": (paddle_3(other=[{"ops": [{"#": "1.py_func"}]}]), "holds '1.py_func'"),
    "custom.json": (paddle_3({"#": "9.mine"}), "holds '9.mine'"),
    "first.json": ('{"program": {"#": "1.save", "#": "0.a_bool"}}', "holds '1.save'"),
    "kind.json": ('{"program": {"#": ["1.save"]}}', "holds '<list>'"),
    "deep.json": ("[" * 100_000, BROKEN),
    "not.json": ("{", BROKEN),
    "nothing.json": ("{}", BROKEN),
    "custom.onnx": (onnx({"operator": [b"Relu"], "domain": [b"com.mine"]}), "holds '<domain com.mine>'"),
    "domain.onnx": (written(".onnx", opset=[{"domain": [b"com.mine"]}]), "holds '<domain com.mine>'"),
    "function.onnx": (written(".onnx", functions=[b""]), "holds '<functions>'"),
    "training.onnx": (written(".onnx", training_information=[b""]), "holds '<training information>'"),
    "inner.onnx": (with_attribute(graph=[{"node": [{"operator": [b"Loop"]}]}]), "holds 'Loop'"),
    "second.onnx": (onnx(b"Relu") + onnx(b"Loop"), "holds 'Loop'"),
    "nested.onnx": (written(".onnx", graph=[NESTED]), BROKEN),
    "external.onnx": (onnx(constant=[{"external_data": [b"../secret"], "external_data_location": [1]}]), EXTERNAL),
    "named.onnx": (onnx(constant=[{"external_data": [b""]}]), EXTERNAL),
    "far.onnx": (onnx(constant=[{"external_data_location": [2**32 + 1]}]), EXTERNAL),
    "constant.onnx": (with_attribute(tensor=[{"external_data_location": [1]}]), EXTERNAL),
    "sparse.onnx": (with_attribute(sparse=[{"values": [{"external_data_location": [1]}]}]), EXTERNAL),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_no_exported_model_has_is_refused_in_one_line(name, write):
    content, message = FOREIGN[name]
    path = write(content, name)
    with pytest.raises(InputError, match=message) as raised:
        check_operators(path)
    error = str(raised.value)
    assert str(path) in error and len(error) < 600 and error.isprintable()


def test_graphs_of_known_operators_are_admitted(write):
    connected = program((b"fill_constant", [], [b"a"]), (b"relu", [b"a"], [b"b"]), variables=[b"a", b"b"])
    plain = onnx(b"Relu", {"operator": [b"MatMul"], "domain": [b"ai.onnx"]}, constant=[{"external_data_location": [0]}])
    weights = b":\x0b*\tJ\x07" + b"\0" * 7  # a constant with raw data, which is not read
    for content, name in ((connected, "a.pdmodel"), (paddle_3({"#": "1.relu", **OPERANDS}), "a.json")):
        check_operators(write(content, name))
    check_operators(written_onnx := write(plain + weights, "a.onnx"))
    assert operators_of(written_onnx) == {"Relu", "MatMul"}


# ---- a graph that cannot be computed
def run_graph(shape, error=None):
    """What is made of a graph whose output is of the shape 2, 3, or which fails with an error."""
    model = ExportedModel.__new__(ExportedModel)
    model._folder, model.graph = "x", Mock()
    model.graph.run.configure_mock(return_value=[np.zeros([2, 3])], side_effect=error)
    return model.run({}, shape)[0]


def test_an_output_has_the_shape_of_the_configuration():
    assert run_graph((2, 3)).shape == run_graph((None, 3)).shape == (2, 3)
    for shape in ((2, 4), (2,), (1, 3)):
        with pytest.raises(InputError, match=r"^x: the graph .* its output is \[2, 3\] in place of .*; copy"):
            run_graph(shape)


@pytest.mark.parametrize("error, kind", [
    (RuntimeError("wrong"), InputError),
    *((error, type(error)) for error in (MemoryError(), RuntimeError("Status Message: std::bad_alloc"))),
])  # fmt: skip
def test_too_little_memory_is_no_damage(error, kind):
    with pytest.raises(kind):
        run_graph((1,), error)
