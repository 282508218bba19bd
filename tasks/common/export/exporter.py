"""Export of trained models into a folder with everything that prediction needs; the graph is written for Paddle
Inference, or converted to ONNX by paddle2onnx."""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import paddle
from paddle.static import InputSpec

from paddle_rope.tasks.common.errors import InputError, reason_of
from paddle_rope.tasks.common.files import atomic_folder, check_new_folder
from paddle_rope.tasks.common.model_folder import (
    GRAPH_FILES,
    GRAPH_WEIGHTS,
    ONNX,
    ONNX_FILE,
    is_exported,
    write_checksums,
)

TOLERANCE = 1e-3  # largest difference of a score; rounding in another order causes about 1e-5
OPSET = 17  # the first with LayerNormalization
_ROUNDED_TO_ZERO = 1e-20  # below it paddle2onnx sets the results of a softmax to zero
Folder = str | os.PathLike


class Exported(NamedTuple):
    """The result of an export."""

    difference: float  # the largest between scores of the exported and the trained model, on some texts
    scores: dict[str, dict[str, Any]]  # of ``trained`` and ``exported`` on the labeled file, if one was given
    limits: list[str]  # lines that say what the exported folder cannot do


class Exporter:
    """How models of a recipe are exported; a subclass defines what differs between recipes."""

    predictor: ClassVar[Any]  # the class that opens the models
    outputs: ClassVar[tuple[str, ...]]  # names of the graph's outputs
    several: ClassVar[bool] = False  # whether several models can become one

    def save(self, predictor: Any, folder: Path) -> None:
        """Write further files that prediction needs, after configuration and tokenizer."""

    def inputs(self, config: Any) -> list[InputSpec | None]:
        """The inputs of the graph: the arguments of the model's ``forward`` in their order, None for those left out. By
        default token ids and their mask."""
        return [InputSpec([None, None], "int64", "input_ids"), InputSpec([None, None], "bool", "attention_mask")]

    def finish(self, model: Any, config: Any) -> None:
        """Add nodes to an ``onnx.ModelProto``."""

    def exact(self, model: Any) -> list[str]:
        """Names of the weights that stay float32 in an int8 graph."""
        return []

    def scores(self, predictor: Any) -> np.ndarray:
        """Scores of some texts, which the exported model must reproduce."""
        raise NotImplementedError

    def limits(self, config: Any) -> list[str]:
        """Lines that say what the exported folder cannot do."""
        return []

    def write_graph(self, model: Any, folder: Path, format: str, quantize: bool = False) -> None:
        """Write the graph of a model into a folder, as ONNX or for Paddle Inference; afterwards the model can be
        neither trained nor called. With ``quantize`` the weights of matrix multiplications and embeddings become int8,
        except the :meth:`exact` ones. Raises InputError if paddle2onnx cannot convert the model."""
        inputs = self.inputs(model.config)
        if format != ONNX:
            write_paddle_graph(model, inputs, folder)
            return
        import onnx

        with tempfile.TemporaryDirectory() as place:
            temporary = Path(place)
            write_paddle_graph(model, inputs, temporary)
            converted = onnx.load_from_string(_converted(temporary))
            simplify(converted.graph)
            _rename_outputs(converted.graph, self.outputs)
            self.finish(converted, model.config)
            onnx.checker.check_model(converted)
            plain = temporary / ONNX_FILE if quantize else folder / ONNX_FILE
            onnx.save(converted, plain)
            if quantize:
                _quantize(plain, folder / ONNX_FILE, self.exact(model))


def export(
    exporter: Exporter,
    model_dirs: list[Folder],
    output_dir: Folder,
    format: str = ONNX,
    quantize: str | None = None,
    check: str | None = None,
    **reading: str,
) -> Exported:
    """Write a trained model, or an ensemble of several, as a folder that predictors open.

    Args:
        exporter, model_dirs: exporter of the models' recipe; folders OUTPUT_DIR/model of training runs.
        output_dir: folder to make.
        format: ``"onnx"``, or ``"paddle"`` for Paddle Inference.
        quantize: ``"int8"`` for weights of 8 bits, only in ONNX; None for 32 bits.
        check: labeled file on which the trained and the exported model are scored.
        reading: how it is read, for NER ``fields`` and ``on_error``.

    Raises:
        InputError: a folder does not hold a trained model, several do not fit together, ``output_dir`` cannot be made,
            or the scores of the exported model differ.
    """
    predictor = exporter.predictor
    check_new_folder(output_dir, "folder")
    for folder in model_dirs:
        if is_exported(folder):
            raise InputError(f"{folder}: is already exported; give the folder OUTPUT_DIR/model of the training run")
    if len(model_dirs) > 1 and not exporter.several:
        raise InputError(f"{len(model_dirs)} models are given; {predictor.arguments.recipe} exports one at a time")
    if quantize and format != ONNX:
        raise InputError(f"--quantize {quantize} is for --format onnx; leave one of them out")
    examples = predictor.labeled.read_file(check, **reading) if check else None
    trained = predictor(list(model_dirs) if exporter.several else model_dirs[0], device="cpu")
    if format == ONNX:
        check_onnx_packages()
    expected, scores = exporter.scores(trained), {}
    if examples:
        scores["trained"] = _scores(trained, examples)
    config = trained.model.config
    with atomic_folder(output_dir) as folder:
        config.save_pretrained(str(folder))
        trained.tokenizer.save_pretrained(folder)
        exporter.save(trained, folder)
        exporter.write_graph(trained.model, folder, format, bool(quantize))
        write_checksums(folder)
        exported = predictor(folder, device="cpu")
        difference = float(np.abs(exporter.scores(exported) - expected).max())
        if not difference <= (np.inf if quantize else TOLERANCE):
            raise InputError(
                f"{output_dir}: not written, as the exported model's scores differ from the trained one's by "
                f"{difference:.2g}; please report this, with config.json of the model"
            )
        if examples:
            scores["exported"] = _scores(exported, examples)
    return Exported(difference, scores, exporter.limits(config))


def _scores(predictor, examples):
    """The scores of a predictor, computed without printing them."""
    with contextlib.redirect_stdout(io.StringIO()):
        scores = predictor.evaluate(examples, "")
    return {name: scores[name] for name in predictor.arguments.SCORES if name in scores}


# ---- graphs


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


def write_paddle_graph(layer: paddle.nn.Layer, inputs: list[InputSpec | None], folder: Path) -> None:
    """Write one of ``GRAPH_FILES``, and ``GRAPH_WEIGHTS``; see :meth:`Exporter.write_graph`."""
    layer.eval()
    paddle.jit.not_to_static(layer.forward)  # its rewriting takes longer than tracing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Paddle warns about calls inside Paddle
        graph = paddle.jit.to_static(layer, input_spec=inputs, full_graph=True)
        paddle.jit.save(graph, str(folder / Path(GRAPH_WEIGHTS).stem))
    (folder / "inference.pdiparams.info").unlink(missing_ok=True)  # Paddle 2 writes it for further training


def _converted(folder):
    graph = next(file for name in GRAPH_FILES if (file := folder / name).is_file())
    with _silence():
        import paddle2onnx

        try:
            # its default optimization would install packages
            return paddle2onnx.export(
                str(graph), str(folder / GRAPH_WEIGHTS), None, opset_version=OPSET, optimize_tool="None"
            )
        except Exception as error:  # it raises errors of all kinds, and prints the reason
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


def _rename_outputs(graph, names):
    new = {output.name: name for output, name in zip(graph.output, names)}
    for output in graph.output:
        output.name = new[output.name]
    for node in graph.node:
        for of_node in (node.input, node.output):
            of_node[:] = [new.get(one, one) for one in of_node]


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


def simplify(graph: Any) -> None:
    """Simplify an ``onnx.GraphProto`` of paddle2onnx in place; its results stay the same.

    Constants become initializers, where quantization looks for weights. Nodes that only copy are removed, as are
    ``Expand`` nodes before ``Where``, which broadcasts anyway, and nodes without users. The cosines of RoPE, of float64
    angles, become sines of (angle + pi/2), because onnxruntime has no cosine of float64 before its version 1.29.
    """
    from onnx import helper, numpy_helper

    graph.initializer.append(numpy_helper.from_array(np.array(np.pi / 2), "quarter_turn"))
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = node.attribute[0].t
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
        else:
            nodes.append(node)
    outputs = {value.name for value in graph.output}
    inner = [node for node in nodes if node.output[0] not in outputs]
    _replace(graph, {node.output[0]: node.input[0] for node in inner if _only_copies(node)})
    _replace(graph, {node.output[0]: node.input[0] for node in inner if node.op_type == "Expand"}, of_users="Where")
    used, kept = set(outputs), []
    for node in reversed(nodes):  # in topological order
        if used.intersection(node.output):
            kept.append(node)
            if node.op_type == "Cos":
                angle, turned = node.input[0], f"{node.output[0]}_angle"
                node.op_type, node.input[0] = "Sin", turned
                kept.append(helper.make_node("Add", [angle, "quarter_turn"], [turned]))
                used.update(kept[-1].input)
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
    """Rename the inputs of nodes of the type ``of_users``, or of all nodes; ``names`` maps old names to new ones."""

    def new(name):
        while name in names:
            name = names[name]
        return name

    for node in graph.node:
        if of_users in (None, node.op_type):
            node.input[:] = map(new, node.input)
