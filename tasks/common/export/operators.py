"""The allow-list of operators: a graph is read and checked before an engine loads it.

An engine executes every operator of a graph: Paddle's ``save`` writes a file, and ONNX can read weights from any file.
So operators that no exported model has are refused. Imports neither paddle nor the package onnx.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.export.wire_format import BYTES, VARINT, FieldReader, Place

# The test of this file exports every kind of model and says which names are missing here, and which only graphs of
# earlier versions have.
_ONNX_NAMES = """
    Abs Add And Cast Clip Compress Concat Cos CumSum DequantizeLinear Div DynamicQuantizeLinear Equal Erf Exp
    Expand Floor Gather GatherND Greater GreaterOrEqual Identity LayerNormalization Less LessOrEqual MatMul
    MatMulInteger Max Mul NonZero Pow Range Reciprocal ReduceMax ReduceMean ReduceSum Relu Reshape Shape Sigmoid
    Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""
_PADDLE_2_NAMES = """
    abs assign_value cast clip concat cos cumsum dropout elementwise_add elementwise_div elementwise_floordiv
    elementwise_max elementwise_mul elementwise_pow elementwise_sub equal exp expand_v2 feed fetch fill_any_like
    fill_constant flatten_contiguous_range gelu greater_equal greater_than index_select layer_norm less_equal
    less_than logical_and lookup_table_v2 matmul_v2 p_norm range reduce_max reduce_mean reduce_sum relu
    reshape2 roll rsqrt scale shape silu sin slice softmax sqrt square squeeze2 stack tanh
    thresholded_relu transpose2 unbind unsqueeze2 where
"""
# Prefixes: 0. the dialect of programs, 1. of operators, a_ kinds of attributes, t_ kinds of values.
_PADDLE_3_NAMES = """
    0.a_array 0.a_bool 0.a_f32 0.a_f64 0.a_i32 0.a_i64 0.a_str 0.combine 0.split 0.t_bool 0.t_dtensor 0.t_f32
    0.t_f64 0.t_i32 0.t_i64 0.t_ui8 0.t_vec 1.a_dtype 1.a_intarray 1.a_place 1.abs 1.add 1.arange
    1.assign_value_ 1.cast 1.clip 1.concat 1.cos 1.cumsum 1.data 1.divide 1.dropout 1.elementwise_pow
    1.embedding 1.equal 1.exp 1.expand 1.fetch 1.flatten 1.floor_divide 1.full 1.full_int_array 1.full_like
    1.full_with_tensor 1.gelu 1.greater_equal 1.greater_than 1.index_select 1.layer_norm 1.less_equal
    1.less_than 1.logical_and 1.matmul 1.max 1.maximum 1.mean 1.multiply 1.p_norm 1.relu 1.reshape 1.roll
    1.rsqrt 1.scale 1.shape64 1.silu 1.sin 1.slice 1.softmax 1.sqrt 1.square 1.squeeze
    1.stack 1.subtract 1.sum 1.tanh 1.thresholded_relu 1.transpose 1.unbind 1.unsqueeze 1.where block_0 p
    region_0
"""
OPERATORS = {
    ".onnx": frozenset(_ONNX_NAMES.split()),
    ".pdmodel": frozenset(_PADDLE_2_NAMES.split()),
    ".json": frozenset(_PADDLE_3_NAMES.split()),
}

_DEEPEST = 20  # messages within messages
_DEFAULT_DOMAINS = ("", "ai.onnx")
_WITHOUT_OPERANDS = ("assign_value", "fill_constant")
_IN_THE_FILE = 0  # of onnx.TensorProto.DataLocation

# The fields of messages of ONNX and of Paddle's programs that are read: number -> kind of message, or what it names.
_ONNX = {
    "ModelProto": {7: "GraphProto", 8: "OperatorSetIdProto", 20: "<training information>", 25: "<functions>"},
    "OperatorSetIdProto": {1: "domain"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "NodeProto": {4: "operator", 5: "AttributeProto", 7: "domain"},
    "AttributeProto": {
        **{5: "TensorProto", 6: "GraphProto", 10: "TensorProto", 11: "GraphProto"},
        **{22: "SparseTensorProto", 23: "SparseTensorProto"},
    },
    "TensorProto": {13: "<external data>", 14: "location"},
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
}
_PADDLE_2 = {"ProgramDesc": {1: "BlockDesc"}, "BlockDesc": {4: "OpDesc"}, "OpDesc": {3: "operator"}}


def check_operators(graph: str | os.PathLike) -> None:
    """Raise InputError unless a graph consists of operators of exported models only and needs no other file; in a
    ``.pdmodel`` each operator must have operands.

    Args:
        graph: ``.onnx``, ``.pdmodel`` or ``.json``.
    """
    graph = Path(graph)
    try:
        unknown = sorted(operators_of(graph) - OPERATORS[graph.suffix])
        if not unknown and graph.suffix == ".pdmodel":
            _check_operands(FieldReader(graph.read_bytes()))
    except (ValueError, RecursionError, OSError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{graph}: is no graph of an exported model ({reason}); copy the whole folder again") from None
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise InputError(
            f"{graph}: holds {ascii(unknown[0])}{more}, which no exported model of this project has, and was not "
            "loaded; take models from people you trust, or export the trained model again"
        )


def operators_of(graph: Path) -> set[str]:
    """The names of all operators of a graph and of its inner graphs.

    Other parts that no exported model has are named in angle brackets, such as ``<external data>``.

    Raises:
        ValueError: the file is no such graph.
    """
    if not graph.stat().st_size:
        raise ValueError("it is empty")
    if graph.suffix == ".json":
        return _of_json(graph.read_text(encoding="utf-8"))
    messages, kind = (_ONNX, "ModelProto") if graph.suffix == ".onnx" else (_PADDLE_2, "ProgramDesc")
    with open(graph, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return set(_of_message(FieldReader(content), (0, len(content)), messages, kind))


def _of_message(reader: FieldReader, place: Place, messages: dict, kind: str, depth: int = 0) -> Iterator[str]:
    """The operators in a message of one kind. A field that occurs twice counts twice, because engines differ in which
    they take."""
    if depth > _DEEPEST:
        raise ValueError("its graphs are nested too deep")
    for number, wire_type, content in reader.fields(place):
        what = messages[kind].get(number)
        if what is None:
            continue
        if what == "location":
            if wire_type != VARINT or reader.number(content) != _IN_THE_FILE:
                yield "<external data>"
        elif wire_type != BYTES:
            raise ValueError(f"field {number} of {kind} is of wire type {wire_type}")
        elif what == "operator":
            yield reader.text(content)
        elif what == "domain":
            if (domain := reader.text(content)) not in _DEFAULT_DOMAINS:
                yield f"<domain {domain}>"
        elif what in messages:
            yield from _of_message(reader, content, messages, what, depth + 1)
        else:
            yield what


def _check_operands(reader):
    """Raise ValueError if an operator of a program of Paddle 2 names no variable: the engine would read at address
    0."""

    def parts(place, number):
        return [content for found, wire_type, content in reader.fields(place) if (found, wire_type) == (number, BYTES)]

    for block in parts((0, len(reader.buffer)), 1):
        variables = {reader.text(name) for variable in parts(block, 3) for name in parts(variable, 1)}
        for operator in parts(block, 4):
            kind = "".join(map(reader.text, parts(operator, 3)))
            inputs, outputs = (
                [reader.text(name) for slot in parts(operator, number) for name in parts(slot, 2)] for number in (1, 2)
            )
            if not inputs and kind not in _WITHOUT_OPERANDS:
                raise ValueError(f"{kind} has no operand")
            if not outputs:
                raise ValueError(f"{kind} has no output")
            for name in (*inputs, *outputs):
                if name not in variables:
                    raise ValueError(f"{kind} names {ascii(name)}, which is no variable")


def _of_json(content):
    """The operators, types and attributes of a program of Paddle 3, where each object has its name under ``#``."""
    found = set()

    def take(pairs):
        for key, value in pairs:
            if key == "#":
                found.add(value if isinstance(value, str) else f"<{type(value).__name__}>")

    json.loads(content, object_pairs_hook=take)
    return found
