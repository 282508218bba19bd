"""What paddle2onnx writes, made plainer: the same results by fewer nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_ROUNDED_TO_ZERO = 1e-20  # below it paddle2onnx sets the results of a softmax to zero


def simplify(model: onnx.ModelProto) -> None:
    """Change a model in place.

    Constants become initializers, without which quantization does not see weights. Nodes that only copy go, and so
    does the expansion of numbers before ``Where``, which expands by itself. What nothing uses goes, too.
    """
    graph = model.graph
    _constants_to_initializers(graph)
    _bypass(graph, _copies)
    _bypass(graph, lambda node: node.op_type == "Expand", of_users="Where")
    _drop_unused(graph)


def _constants_to_initializers(graph):
    for node in [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        tensor = node.attribute[0].t
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        graph.node.remove(node)


def _copies(node):
    if node.op_type == "ThresholdedRelu":
        return any(one.name == "alpha" and 0 <= one.f <= _ROUNDED_TO_ZERO for one in node.attribute)
    return node.op_type == "Identity"


def _bypass(graph, is_copy, of_users=None):
    """Take the input of a node for its output, in nodes of the kind ``of_users`` or in all of them."""
    kept = {value.name for value in graph.output}
    sources = {node.output[0]: node.input[0] for node in graph.node if is_copy(node) and node.output[0] not in kept}
    for node in graph.node:
        if of_users in (None, node.op_type):
            for place, name in enumerate(node.input):
                while name in sources:
                    name = sources[name]
                node.input[place] = name


def _drop_unused(graph):
    used = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):  # in topological order
        if used.intersection(node.output):
            kept.append(node)
            used.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    initializers = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(initializers)
