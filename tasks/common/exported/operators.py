"""The operators of a graph, read before an engine loads it, and those that exported models are made of.

An engine does whatever a graph asks for: Paddle's operator ``save`` writes a file, ONNX may name files for its weights.
What is not in the lists below is refused. Without paddle and without the package onnx.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.exported.operator_names import OPERATORS
from tasks.common.exported.wire_format import BYTES, VARINT, FieldReader, Place
from tasks.common.language import Message

MOST_FIELDS = 5_000_000  # of a binary graph; twelve layers have some 50,000 in ONNX and 300,000 in Paddle
LARGEST_JSON = 2**26  # bytes; twelve layers have about a million
_DEEPEST = 20  # messages within messages
_DEFAULT_DOMAINS = ("", "ai.onnx")
_IN_THE_FILE = 0  # of onnx.TensorProto.DataLocation


def check_operators(graph: str | os.PathLike) -> None:
    """Raise InputError unless a graph is made of the operators of exported models alone, and of its own file.

    Args:
        graph: ``.onnx``, ``.pdmodel`` or ``.json``.
    """
    graph = Path(graph)
    try:
        used = operators_of(graph)
    except (ValueError, RecursionError, OSError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            "{graph}: is no graph of an exported model ({reason}); copy the whole folder again",
            graph=graph,
            reason=reason,
        ) from None
    unknown = sorted(used - OPERATORS[graph.suffix])
    if unknown:
        more = Message(" and {count} more", count=len(unknown) - 1) if len(unknown) > 1 else ""
        raise InputError(
            "{graph}: holds {name}{more}, which no exported model of this project has, and was not "
            "loaded; take models from people you trust, or export the trained model again",
            graph=graph,
            name=ascii(unknown[0]),
            more=more,
        )


def operators_of(graph: Path) -> set[str]:
    """The names of all operators of a graph, those of its inner graphs too.

    Other parts of which exported models have none are named like operators, in angle brackets: ``<external data>``.

    Raises:
        ValueError: the file is no such graph.
    """
    read = {".onnx": _of_onnx, ".pdmodel": _of_program, ".json": _of_json}[graph.suffix]
    with open(graph, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise ValueError("it is empty")
        if graph.suffix == ".json" and size > LARGEST_JSON:
            raise ValueError(f"it has {size:,} bytes, more than {LARGEST_JSON:,}")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return set(read(content))


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
    return _of_message(FieldReader(content, MOST_FIELDS), (0, len(content)), _ONNX, "ModelProto")


def _of_program(content):
    return _of_message(FieldReader(content, MOST_FIELDS), (0, len(content)), _PADDLE, "ProgramDesc")


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
