"""The operators of a graph, read before an engine loads it, and those that exported models are made of.

An engine does whatever a graph asks for: Paddle's operator ``save`` writes a file, ONNX may name files for its weights.
What is not in the lists below is refused. Without paddle and without the package onnx.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.export.wire_format import BYTES, VARINT, FieldReader, Place

# tests/common/export/test_operators.py exports every kind of model and says which names are missing here, and which
# are in no graph.
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
# Dialects have numbers: 0 is that of programs, 1 of operators. a_: kinds of attributes, t_: kinds of values.
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


def check_operators(graph: str | os.PathLike) -> None:
    """Raise InputError unless a graph is made of the operators of exported models alone, and of its own file, and the
    operators of a ``.pdmodel`` have operands.

    Args:
        graph: ``.onnx``, ``.pdmodel`` or ``.json``.
    """
    graph = Path(graph)
    try:
        unknown = sorted(operators_of(graph) - OPERATORS[graph.suffix])
        if not unknown and graph.suffix == ".pdmodel":
            with _content_of(graph) as content:
                _check_operands(FieldReader(content), (0, len(content)))
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
    """The names of all operators of a graph, those of its inner graphs too.

    Other parts of which exported models have none are named like operators, in angle brackets: ``<external data>``.

    Raises:
        ValueError: the file is no such graph.
    """
    read = {".onnx": _of_onnx, ".pdmodel": _of_program, ".json": _of_json}[graph.suffix]
    with _content_of(graph) as content:
        return set(read(content))


@contextlib.contextmanager
def _content_of(graph):
    with open(graph, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ValueError("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


# Of the messages of ONNX and of Paddle's programs: the numbers of the fields that are read.
# field -> (kind of message, or what is taken of a name or number)
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
_PADDLE = {
    "ProgramDesc": {1: "BlockDesc"},
    "BlockDesc": {4: "OpDesc"},
    "OpDesc": {3: "operator"},
}


def _of_onnx(content):
    return _of_message(FieldReader(content), (0, len(content)), _ONNX, "ModelProto")


def _of_program(content):
    return _of_message(FieldReader(content), (0, len(content)), _PADDLE, "ProgramDesc")


def _check_operands(reader, program):
    """Raise ValueError where an operator of a program of Paddle 2 names no variable: the engine reads at address 0."""

    def parts(place, number):
        return [content for found, wire_type, content in reader.fields(place) if (found, wire_type) == (number, BYTES)]

    for block in parts(program, 1):
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


def _of_message(reader: FieldReader, place: Place, messages: dict, kind: str, depth: int = 0) -> Iterator[str]:
    """What stands in a message of one kind. A field that is there twice counts twice: whichever an engine takes."""
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


def _of_json(content):
    """Operators, and types and attributes, of a program of Paddle 3: each says under ``#`` what it is."""
    found = set()

    def take(pairs):
        for key, value in pairs:
            if key == "#":
                found.add(value if isinstance(value, str) else f"<{type(value).__name__}>")

    json.loads(content[:].decode("utf-8"), object_pairs_hook=take)
    return found
