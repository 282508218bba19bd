"""The allow-list of operators: a graph is read and checked before an engine loads it.

An engine executes every operator of a graph: Paddle's ``save`` writes a file, and ONNX can read weights from any file.
So operators that no exported model has are refused. Imports neither paddle nor the package onnx.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

from paddle_rope.tasks.common.errors import InputError, reason_of
from paddle_rope.tasks.common.texts.text_files import shown

# The test of this file exports every kind of model and says which names are missing here, and which only graphs of
# earlier versions have.
_ONNX_NAMES = """
    Abs Add And Cast Clip Compress Concat Cos CumSum DequantizeLinear Div DynamicQuantizeLinear Equal Erf Exp
    Expand Floor Gather GatherND Greater GreaterOrEqual Identity LayerNormalization Less LessOrEqual MatMul
    MatMulInteger Max Min Mul NonZero Pow Range Reciprocal ReduceMax ReduceMean ReduceSum Relu Reshape Shape Sigmoid
    Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""
_PADDLE_2_NAMES = """
    abs assign_value cast clip concat cos cumsum dropout elementwise_add elementwise_div elementwise_floordiv
    elementwise_max elementwise_min elementwise_mul elementwise_pow elementwise_sub equal exp expand_as_v2 expand_v2
    feed fetch fill_any_like fill_constant flatten_contiguous_range gelu greater_equal greater_than index_select
    layer_norm less_equal less_than logical_and lookup_table_v2 matmul_v2 p_norm range reduce_max reduce_mean reduce_sum
    relu reshape2 rsqrt scale shape silu sin slice softmax sqrt square squeeze2 stack tanh transpose2 unbind unsqueeze2
    where
"""
# Prefixes: 0. the dialect of programs, 1. of operators, a_ kinds of attributes, t_ kinds of values.
_PADDLE_3_NAMES = """
    0.a_array 0.a_bool 0.a_f32 0.a_f64 0.a_i32 0.a_i64 0.a_str 0.combine 0.split 0.t_bool 0.t_dtensor 0.t_f32
    0.t_f64 0.t_i32 0.t_i64 0.t_ui8 0.t_vec 1.a_dtype 1.a_intarray 1.a_place 1.abs 1.add 1.arange
    1.assign_value_ 1.cast 1.clip 1.concat 1.cos 1.cumsum 1.data 1.divide 1.dropout 1.elementwise_pow
    1.embedding 1.equal 1.exp 1.expand 1.expand_as 1.fetch 1.flatten 1.floor_divide 1.full 1.full_int_array 1.full_like
    1.full_with_tensor 1.gelu 1.greater_equal 1.greater_than 1.index_select 1.layer_norm 1.less_equal
    1.less_than 1.logical_and 1.matmul 1.max 1.maximum 1.mean 1.minimum 1.multiply 1.p_norm 1.relu 1.reshape
    1.rsqrt 1.scale 1.shape64 1.silu 1.sin 1.slice 1.softmax 1.sqrt 1.square 1.squeeze
    1.stack 1.subtract 1.sum 1.tanh 1.transpose 1.unbind 1.unsqueeze 1.where block_0 p
    region_0
"""
OPERATORS = {
    ".onnx": frozenset(_ONNX_NAMES.split()),
    ".pdmodel": frozenset(_PADDLE_2_NAMES.split()),
    ".json": frozenset(_PADDLE_3_NAMES.split()),
}

_PADDLE_3_OPERATORS = {name for name in OPERATORS[".json"] if not re.search("[.][at]_|_0$", name)}
_PARAMETER = {"A", "O", "OA"}  # keys: attributes, outputs, attributes of the outputs
_OPERATOR = {"I", *_PARAMETER}  # and inputs

_DEFAULT_DOMAINS = (b"", b"ai.onnx")
_WITHOUT_OPERANDS = (b"assign_value", b"fill_constant")
_IN_THE_FILE = 0  # of onnx.TensorProto.DataLocation
_REFUSED = ("external_data", "external_data_location", "functions", "training_information")
# The parts of ONNX and of Paddle's files that are read: message -> field -> (number, its message or type).
_SCHEMAS: dict[str, dict[str, dict[str, tuple[int, Any]]]] = {
    ".onnx": {
        "ModelProto": {
            "graph": (7, "GraphProto"),
            "opset": (8, "OperatorSetIdProto"),
            "training_information": (20, bytes),
            "functions": (25, bytes),
        },
        "OperatorSetIdProto": {"domain": (1, bytes)},
        "GraphProto": {"node": (1, "NodeProto"), "constant": (5, "TensorProto"), "sparse": (15, "SparseTensorProto")},
        "NodeProto": {"operator": (4, bytes), "attribute": (5, "AttributeProto"), "domain": (7, bytes)},
        "AttributeProto": {
            **{"tensor": (5, "TensorProto"), "graph": (6, "GraphProto")},
            **{"tensors": (10, "TensorProto"), "graphs": (11, "GraphProto")},
            **{"sparse": (22, "SparseTensorProto"), "sparses": (23, "SparseTensorProto")},
        },
        "TensorProto": {"external_data": (13, bytes), "external_data_location": (14, int)},
        "SparseTensorProto": {"values": (1, "TensorProto"), "indices": (2, "TensorProto")},
    },
    ".pdmodel": {
        "ProgramDesc": {"blocks": (1, "BlockDesc")},
        "BlockDesc": {"variables": (3, "VarDesc"), "operators": (4, "OpDesc")},
        "VarDesc": {"name": (1, bytes)},
        "OpDesc": {"inputs": (1, "Slot"), "outputs": (2, "Slot"), "operator": (3, bytes)},
        "Slot": {"names": (2, bytes)},
    },
    ".pdiparams": {"TensorDesc": {"dtype": (1, int), "sizes": (2, int)}},
}


def check_operators(graph: str | os.PathLike) -> None:
    """Raise InputError unless a graph, ``.onnx``, ``.pdmodel`` or ``.json``, consists of operators of exported models
    only and needs no other file; in a ``.pdmodel`` each operator must have operands."""
    graph = Path(graph)
    try:
        found = operators_of(graph)
        unknown = sorted(found - OPERATORS[graph.suffix])
        if not found:
            raise ValueError("it has no operator")
        if not unknown and graph.suffix == ".pdmodel":
            _check_operands(message_class(graph.suffix).FromString(graph.read_bytes()))
    except (ValueError, RecursionError, OSError, DecodeError) as error:
        found = f"is no graph of an exported model ({reason_of(error)})"
        raise InputError(f"{graph}: {found}; copy the whole folder again") from None
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise InputError(
            f"{graph}: holds {shown(unknown[0])}{more}, which no exported model of this project has, and was not "
            "loaded; take models from people you trust, or export the trained model again"
        )


def operators_of(graph: Path) -> set[str]:
    """The names of all operators of a graph and of its inner graphs; other parts that no exported model has are named
    in angle brackets, such as ``<external data>``. Raises an error if the file is no such graph."""
    if graph.suffix == ".json":
        return _of_json(graph.read_text(encoding="utf-8"))
    return set(_of_message(message_class(graph.suffix).FromString(graph.read_bytes())))


def message_class(suffix: str) -> Any:
    """The protocol buffer of a kind of file, one of ``_SCHEMAS``. Every field is read as repeated, because
    engines may differ in which occurrence of a field they take."""
    file = FileDescriptorProto(name="graph.proto", package="graph")
    for kind, fields in _SCHEMAS[suffix].items():
        message = file.message_type.add(name=kind)
        for name, (number, content) in fields.items():
            field = message.field.add(name=name, number=number, label=FieldDescriptorProto.LABEL_REPEATED)
            if isinstance(content, str):
                field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".graph.{content}"
            else:
                field.type = FieldDescriptorProto.TYPE_BYTES if content is bytes else FieldDescriptorProto.TYPE_INT64
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"graph.{next(iter(_SCHEMAS[suffix]))}"))


def _of_message(message) -> Iterator[str]:
    for field, contents in message.ListFields():
        for content in contents:
            if field.message_type is not None:
                yield from _of_message(content)
            elif field.name == "operator":
                yield _text(content)
            elif field.name == "domain" and content not in _DEFAULT_DOMAINS:
                yield f"<domain {_text(content)}>"
            elif field.name in _REFUSED and content != _IN_THE_FILE:
                yield f"<{field.name.replace('_', ' ')}>"


def _check_operands(program):
    """Raise ValueError if an operator of Paddle 2 names no variable: the engine would read at address 0."""
    for block in program.blocks:
        variables = {name for variable in block.variables for name in variable.name}
        for operator in block.operators:
            kind = b"".join(operator.operator)
            inputs = [name for slot in operator.inputs for name in slot.names]
            outputs = [name for slot in operator.outputs for name in slot.names]
            if not inputs and kind not in _WITHOUT_OPERANDS:
                raise ValueError(f"{_text(kind)} has no operand")
            if not outputs:
                raise ValueError(f"{_text(kind)} has no output")
            for name in (*inputs, *outputs):
                if name not in variables:
                    raise ValueError(f"{_text(kind)} names {shown(_text(name))}, which is no variable")


def _text(content):
    return content.decode("utf-8", "backslashreplace")


def _of_json(content):
    """The operators, types and attributes of a program of Paddle 3, where each object has its name under ``#``. One
    without operands is named in angle brackets: the engine would read at address 0."""
    found = set()

    def take(pairs):
        keys = {key for key, _ in pairs}
        for key, value in pairs:
            if key == "#":
                name = value if isinstance(value, str) else f"<{type(value).__name__}>"
                found.add(name)
                if name in _PADDLE_3_OPERATORS and not keys >= (_PARAMETER if name == "p" else _OPERATOR):
                    found.add(f"<{name} without operands>")

    json.loads(content, object_pairs_hook=take)
    return found
