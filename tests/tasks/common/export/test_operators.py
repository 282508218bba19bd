"""The operators of graphs: those of all exported models are admitted, others never reach an engine."""

import json
import re

import paddle
import pytest

from paddle_rope import options as choices
from paddle_rope.roformer import SequenceClassificationConfig
from tasks.common.errors import InputError
from tasks.common.export import graphs
from tasks.common.export.operators import OPERATORS, check_operators, operators_of
from tests.tasks.common.export.all_kinds import ALL_KINDS, write_graph
from tests.tasks.common.export.graph_bytes import connected_program, field, onnx_model, onnx_node, program

IS_PADDLE_2 = paddle.__version__.startswith("2.")
QUANTIZED = (0, 2, 5, 19)
# of graphs that version 0.2 exported
EARLIER = {"0.t_ui8", "1.dropout", "dropout"}


@pytest.mark.parametrize("value", [*choices.FEATURE_MAPS, *choices.ACTIVATIONS, *choices.NORMALIZERS])
def test_every_option_is_among_the_kinds(value):
    names = ("feature_map", "hidden_act", "normalizer")
    assert any(getattr(config, name) == value for *_, config in ALL_KINDS for name in names)


def test_every_kind_of_attention_position_and_pooling_is_among_the_kinds():
    configs = [config for *_, config in ALL_KINDS]
    assert {kind for config in configs for kind in config.layer_attention} == set(choices.ATTENTION_KINDS)
    assert any(config.convolutions for config in configs)
    assert any((config.rotary or {}).get("layout") == "half" for config in configs)
    others = set(choices.POSITION_EMBEDDINGS) - set(choices.PLACEMENTS)
    assert {config.position_embedding for config in configs} >= others | {"qk", "qkvo", "o"}
    classifiers = [config for config in configs if isinstance(config, SequenceClassificationConfig)]
    assert {config.pooling for config in classifiers} == set(choices.POOLINGS)
    assert {config.classifier_activation for config in classifiers} == set(choices.ACTIVATIONS)


@pytest.mark.slow
def test_the_list_is_that_of_the_operators_of_exported_models(tmp_path, monkeypatch):
    held = {}

    def take(graph):
        check_operators(graph)
        held.setdefault(graph.suffix, set()).update(operators_of(graph))

    def converted(folder):
        take(folder / "inference.json")
        return convert(folder)

    convert = graphs._converted
    monkeypatch.setattr(graphs, "_converted", converted)
    for number, kind in enumerate(ALL_KINDS):
        for quantize in (False, True) if number in QUANTIZED and not IS_PADDLE_2 else (False,):
            folder = tmp_path / f"{number}{quantize}"
            folder.mkdir()
            write_graph(*kind, folder, "paddle" if IS_PADDLE_2 else "onnx", quantize)
            take(next(path for path in folder.iterdir() if path.suffix in OPERATORS))
    assert held.keys() == ({".pdmodel"} if IS_PADDLE_2 else {".onnx", ".json"})
    for suffix, names in held.items():
        assert names <= OPERATORS[suffix] and OPERATORS[suffix] - names <= EARLIER, suffix


SAVE = {"#": "1.save", "A": [], "I": [], "O": [], "OA": []}
BLOCK = {"#": "block_0", "args": [], "ops": []}


def paddle_3(*operators, **more):
    blocks = [{**BLOCK, "ops": [*operators]}]
    return json.dumps(
        {"base_code": {"magic": "pir"}, "program": {"regions": [{"#": "region_0", "blocks": blocks}], **more}}
    )


FOREIGN = {
    "save.pdmodel": (program([b"relu"], [b"save"]), "holds 'save', which no exported model"),
    "load.pdmodel": (program([b"feed", b"load", b"fetch"]), "holds 'load'"),
    "print.pdmodel": (program([b"print", b"py_func", b"run_program"]), "holds 'print' and 2 more"),
    "twice.pdmodel": (field(1, field(4, field(3, b"save") + field(3, b"relu"))), "holds 'save'"),
    "number.pdmodel": (field(1, 5), "field 1 of ProgramDesc is of wire type 0"),
    "empty.pdmodel": (b"", "it is empty"),
    "longer.pdmodel": (field(1, b"abc")[:-1], "a field ends behind its message"),
    "group.pdmodel": (b"\x0b\x0c", "wire type 3"),
    "varint.pdmodel": (b"\x08" + b"\xff" * 11, "cut short or too long"),
    "long.pdmodel": (program([b"x" * 1000]), "a name has 1000 bytes"),
    "escape.pdmodel": (program([b"\x1b[31m"]), r"holds '\\x1b\[31m'"),
    "fetch.pdmodel": (connected_program([b"a"], (b"fetch", [b"b"], [b"a"])), "fetch names 'b', which is no variable"),
    "outputs.pdmodel": (connected_program([b"a"], (b"relu", [b"a"], [b"b"])), "relu names 'b', which is no variable"),
    "feed.pdmodel": (connected_program([b"a"], (b"feed", [], [b"a"])), "feed has no operand"),
    "no_output.pdmodel": (connected_program([b"a"], (b"relu", [b"a"], [])), "relu has no output"),
    "save.json": (paddle_3({"#": "p"}, SAVE), "holds '1.save'"),
    "inner.json": (paddle_3({"#": "1.relu", "regions": [{"blocks": [{"ops": [SAVE]}]}]}), "holds '1.save'"),
    "beside.json": (paddle_3(other=[{"ops": [{"#": "1.py_func"}]}]), "holds '1.py_func'"),
    "custom.json": (paddle_3({"#": "9.mine"}), "holds '9.mine'"),
    "first.json": ('{"program": {"#": "1.save", "#": "1.relu"}}', "holds '1.save'"),
    "kind.json": ('{"program": {"#": ["1.save"]}}', "holds '<list>'"),
    "deep.json": ("[" * 100_000, "is no graph"),
    "not.json": ("{", "is no graph"),
    "custom.onnx": (onnx_model(onnx_node(b"Relu", b"com.mine")), "holds '<domain com.mine>'"),
    "domain.onnx": (onnx_model(more=field(8, field(1, b"com.mine"))), "holds '<domain com.mine>'"),
    "function.onnx": (onnx_model(more=field(25, b"")), "holds '<functions>'"),
    "training.onnx": (onnx_model(more=field(20, b"")), "holds '<training information>'"),
    "loop.onnx": (onnx_model(onnx_node(b"Loop")), "holds 'Loop'"),
    "inner.onnx": (onnx_model(onnx_node(b"Relu", b"", field(6, field(1, onnx_node(b"Loop"))))), "holds 'Loop'"),
    "second.onnx": (onnx_model() + onnx_model(onnx_node(b"Loop")), "holds 'Loop'"),
    "external.onnx": (
        onnx_model(initializers=[field(13, field(1, b"location") + field(2, b"../secret")) + field(14, 1)]),
        "holds '<external data>'",
    ),
    "named.onnx": (onnx_model(initializers=[field(13, b"")]), "holds '<external data>'"),
    "far.onnx": (onnx_model(initializers=[field(14, 2**32 + 1)]), "holds '<external data>'"),
    "constant.onnx": (onnx_model(onnx_node(b"Relu", b"", field(5, field(14, 1)))), "holds '<external data>'"),
    "sparse.onnx": (onnx_model(onnx_node(b"Relu", b"", field(22, field(1, field(14, 1))))), "holds '<external data>'"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_no_exported_model_has_is_refused_in_one_line(name, tmp_path):
    content, message = FOREIGN[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as raised:
        check_operators(tmp_path / name)
    error = str(raised.value)
    assert str(tmp_path / name) in error and len(error) < 600 and error.isprintable()


def test_graphs_of_known_operators_are_admitted(tmp_path):
    plain = onnx_model(onnx_node(b"Relu"), onnx_node(b"MatMul", b"ai.onnx"), initializers=[field(9, b"\0" * 8)])
    connected = connected_program([b"a", b"b"], (b"fill_constant", [], [b"a"]), (b"relu", [b"a"], [b"b"]))
    graphs = {"a.onnx": plain, "a.json": paddle_3({"#": "1.relu"}).encode(), "a.pdmodel": connected}
    for name, content in graphs.items():
        (tmp_path / name).write_bytes(content)
        check_operators(tmp_path / name)
    assert operators_of(tmp_path / "a.onnx") == {"Relu", "MatMul"}


def test_graphs_nested_deep_are_refused(tmp_path):
    inner = onnx_node(b"Relu")
    for _ in range(30):
        inner = onnx_node(b"Relu", b"", field(6, field(1, inner)))
    (tmp_path / "a.onnx").write_bytes(onnx_model(inner))
    with pytest.raises(InputError, match="nested too deep"):
        check_operators(tmp_path / "a.onnx")


def test_the_message_names_no_more_than_it_must(tmp_path):
    (tmp_path / "a.onnx").write_bytes(onnx_model(onnx_node(b"A"), onnx_node(b"B")))
    with pytest.raises(InputError) as raised:
        check_operators(tmp_path / "a.onnx")
    assert re.search(
        r"a\.onnx: holds 'A' and 1 more, .* was not loaded; take models from people you trust", str(raised.value)
    )
