"""Layers as static graphs: for Paddle Inference, and as ONNX by paddle2onnx."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import paddle
from paddle.static import InputSpec

from tasks.common.errors import InputError, reason_of
from tasks.common.export.folder import GRAPH_FILES, ONNX_FILE, WEIGHTS_FILE

if TYPE_CHECKING:
    import onnx

_ROUNDED_TO_ZERO = 1e-20  # below it paddle2onnx sets the results of a softmax to zero
OPSET = 17  # the first with LayerNormalization


def check_onnx_packages() -> None:
    """Raise InputError unless this process can write and run ONNX graphs."""
    if paddle.__version__.startswith("2."):
        remedy = "give --format paddle, or export with Paddle 3: folders of trained models are the same for both"
        raise InputError(f"paddle2onnx does not work with Paddle {paddle.__version__}; {remedy}")
    for name in ("ml_dtypes", "onnx", "onnxruntime", "paddle2onnx"):
        if importlib.util.find_spec(name) is None:
            remedy = "pip install 'paddle_rope[cpu,onnx]'"
            if name == "paddle2onnx" and sys.version_info >= (3, 13):
                remedy = "it has wheels for Python up to 3.12, so export there"
            raise InputError(f"ONNX needs the package {name}; {remedy}, or give --format paddle")


def write_paddle_graph(layer: paddle.nn.Layer, inputs: Sequence[InputSpec | None], folder: Path) -> None:
    """Write a graph for Paddle Inference into a folder: one of ``GRAPH_FILES``, and ``WEIGHTS_FILE``. ``inputs`` has
    None for an argument that the layer does not get; it can be neither trained nor called afterwards."""
    layer.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of Paddle, on calls inside Paddle
        graph = paddle.jit.to_static(layer, input_spec=list(inputs), full_graph=True)
        paddle.jit.save(graph, str(folder / Path(WEIGHTS_FILE).stem))
    (folder / "inference.pdiparams.info").unlink(missing_ok=True)  # Paddle 2 writes it for further training


def write_onnx_graph(
    layer: paddle.nn.Layer,
    inputs: Sequence[InputSpec | None],
    folder: Path,
    output: str,
    finish: Callable[[onnx.ModelProto], None] = lambda model: None,
    quantize: bool = False,
    exact: Collection[str] = (),
) -> None:
    """Write ``ONNX_FILE``; raises InputError if paddle2onnx cannot convert the layer.

    Args:
        layer, inputs, folder: as of :func:`write_paddle_graph`; the layer has one output.
        output: its name in the graph.
        finish: changes the graph at last, before it is checked.
        quantize: whether the weights of matrix products and embeddings become int8, but for those named in ``exact``.
    """
    import onnx

    with tempfile.TemporaryDirectory() as temporary:
        write_paddle_graph(layer, inputs, Path(temporary))
        model = onnx.load_from_string(_converted(Path(temporary)))
        simplify(model.graph)
        _rename_output(model.graph, output)
        finish(model)
        onnx.checker.check_model(model)
        plain = Path(temporary) / ONNX_FILE if quantize else folder / ONNX_FILE
        onnx.save(model, plain)
        if quantize:
            _quantize(plain, folder / ONNX_FILE, exact)


def _converted(folder):
    graph = next(file for name in GRAPH_FILES if (file := folder / name).is_file())
    with _silence():
        import paddle2onnx

        try:
            # its default optimization would install packages
            return paddle2onnx.export(
                str(graph), str(folder / WEIGHTS_FILE), None, opset_version=OPSET, optimize_tool="None"
            )
        except Exception as error:  # it raises all kinds, and prints the reason
            reason = reason_of(error)
    raise InputError(f"paddle2onnx cannot convert this model ({reason}); give --format paddle")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop everything that libraries print, C++ libraries included."""
    with open(os.devnull, "w") as nowhere, contextlib.ExitStack() as stack:
        for number in (1, 2):
            saved = os.dup(number)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, number)
            os.dup2(nowhere.fileno(), number)
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        yield


def _rename_output(graph, name):
    old, graph.output[0].name = graph.output[0].name, name
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [name if one == old else one for one in names]


def _quantize(source, target, exact):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    kept = [node.name for node in onnx.load(source).graph.node if not set(node.input).isdisjoint(exact)]
    with _silence():
        quantize_dynamic(
            source,
            target,
            per_channel=True,
            weight_type=QuantType.QInt8,  # unsigned weights are slow on CPUs with VNNI
            op_types_to_quantize=["MatMul", "Gather"],
            nodes_to_exclude=kept,
            extra_options={"MatMulConstBOnly": True},
        )


def simplify(graph: onnx.GraphProto) -> None:
    """Simplify a graph of paddle2onnx in place; its results stay the same.

    Constants become initializers, where quantization looks for weights. Nodes that only copy are removed, as are the
    expansion of numbers before ``Where``, which broadcasts, and nodes without users.
    """
    for node in [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        tensor = node.attribute[0].t
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        graph.node.remove(node)
    outputs = {value.name for value in graph.output}
    inner = [node for node in graph.node if node.output[0] not in outputs]
    _replace(graph, {node.output[0]: node.input[0] for node in inner if _only_copies(node)})
    _replace(graph, {node.output[0]: node.input[0] for node in inner if node.op_type == "Expand"}, of_users="Where")
    used, kept = set(outputs), []
    for node in reversed(graph.node):  # in topological order
        if used.intersection(node.output):
            kept.append(node)
            used.update(node.input)
    initializers = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(initializers)


def _only_copies(node):
    if node.op_type == "ThresholdedRelu":
        return any(one.name == "alpha" and 0 <= one.f <= _ROUNDED_TO_ZERO for one in node.attribute)
    return node.op_type == "Identity"


def _replace(graph, names, of_users=None):
    """Give nodes of the kind ``of_users``, or all of them, other inputs: dict from old to new names."""

    def new(name):
        while name in names:
            name = names[name]
        return name

    for node in graph.node:
        if of_users in (None, node.op_type):
            node.input[:] = map(new, node.input)
