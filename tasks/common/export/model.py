"""Exported models, and the engines that compute their graphs: onnxruntime, without paddle, and Paddle Inference."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddle_rope.machine import physical_cores
from paddle_rope.tasks.common.errors import InputError, damage_reported
from paddle_rope.tasks.common.inference import Batch
from paddle_rope.tasks.common.model_folder import COPY, GRAPH_FILES, GRAPH_WEIGHTS, ONNX_FILE

_ONLY_FATAL = 4  # a severity level of onnxruntime's log
GPU_MEGABYTES = 256  # at the beginning; Paddle allocates more when it needs more


class ExportedModel:
    """The graph of a checked export folder, :class:`OnnxGraph` or :class:`PaddleGraph`, in place of the trained
    model. Raises InputError if the graph cannot be read, or the device cannot be used."""

    def __init__(self, folder: str | os.PathLike, config: Any, device: str | None = None):
        self.config = config
        self._folder = folder
        self.graph = (OnnxGraph if (Path(folder) / ONNX_FILE).is_file() else PaddleGraph)(folder, device)

    def output(self, batch: Batch) -> np.ndarray:
        """The output for a batch, of a graph with a single output."""
        return self.run(batch, (len(batch["input_ids"]), *self.config.output_shape))[0]

    def run(
        self, batch: Batch, shape: tuple[int | None, ...], outputs: Sequence[str] | None = None
    ) -> list[np.ndarray]:
        """Outputs of the graph for a batch, from which it takes only its inputs; ``outputs`` are names, only for ONNX.
        Raises InputError if the graph cannot be computed, or the first output does not have the ``shape`` of the
        configuration, in which None allows any size."""
        with damage_reported(f"{self._folder}: the graph", COPY):
            found = self.graph.run(batch) if outputs is None else self.graph.run(batch, outputs)
            given = found[0].shape
            if len(given) != len(shape) or any(size not in (None, one) for size, one in zip(shape, given)):
                raise ValueError(f"its output is {list(given)} in place of {list(shape)}")
        return found


class OnnxGraph:
    """The file ``model.onnx`` of a folder, computed by onnxruntime. Threads may share it.

    ``device`` is ``"cpu"``, ``"gpu"`` or ``"gpu:N"``; None uses the GPU if onnxruntime can. Raises InputError if
    onnxruntime is not installed, cannot use the device or read the graph, or if ``check_operators`` does.
    """

    def __init__(self, folder: str | os.PathLike, device: str | None = None):
        try:
            import onnxruntime
        except ImportError:
            raise InputError(
                f"{folder}: is an ONNX model, and onnxruntime is not installed; pip install 'paddle_rope[onnx]'"
            ) from None
        from paddle_rope.tasks.common.export.operators import (
            check_operators,  # with protobuf, which comes with the engines
        )

        options = onnxruntime.SessionOptions()
        threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # OpenMP also takes lists
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else physical_cores()
        options.log_severity_level = _ONLY_FATAL
        # threads that wait in a loop for the next operator take the processor from other processes
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # batch shapes vary, so arenas for fixed shapes would only hold memory
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        providers = _providers(device, onnxruntime.get_available_providers())
        graph = Path(folder) / ONNX_FILE
        check_operators(graph)
        with damage_reported(f"{folder}: {ONNX_FILE}", COPY):
            # the kernel of SkipLayerNormFusion is slower than the parts that it fuses
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers, disabled_optimizers=["SkipLayerNormFusion"]
            )
        inputs = (*self._session.get_inputs(), *self._session.get_overridable_initializers())
        self._inputs = {node.name for node in inputs}
        self.outputs = [node.name for node in self._session.get_outputs()]
        self._run_options = onnxruntime.RunOptions()
        self._run_options.only_execute_path_to_fetches = True

    def run(self, batch: dict[str, np.ndarray], outputs: Sequence[str] | None = None) -> list[np.ndarray]:
        """Outputs of the graph by name, None for the first one; only the graph's inputs are taken from ``batch``."""
        given = {name: array for name, array in batch.items() if name in self._inputs}
        return self._session.run(list(outputs or self.outputs[:1]), given, self._run_options)


def _providers(device, available):
    wanted = "CPUExecutionProvider"
    if device is None and "CUDAExecutionProvider" in available:
        device = "gpu"
    if device is None or device == "cpu":
        return [wanted]
    kind, _, number = device.partition(":")
    if kind != "gpu" or "CUDAExecutionProvider" not in available or (number and not number.isdecimal()):
        remedy = "use --device cpu, or install onnxruntime-gpu"
        raise InputError(f"--device {device}: onnxruntime cannot use it here; {remedy}")
    return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), wanted]


class PaddleGraph:
    """One of ``GRAPH_FILES`` of a folder with its weights, computed by Paddle Inference. Threads may share it; it
    serves one at a time.

    ``device`` is as in ``choose_device``. Raises InputError if the device cannot be used, this Paddle cannot read the
    graph, or ``check_operators`` does.
    """

    def __init__(self, folder: str | os.PathLike, device: str | None = None):
        import paddle

        from paddle_rope.tasks.common.export.operators import check_operators
        from paddle_rope.tasks.common.export.weights import check_weights
        from paddle_rope.tasks.common.process import choose_device

        choose_device(device)
        there = [name for name in GRAPH_FILES if Path(folder, name).is_file()]
        graph = Path(folder, (there or GRAPH_FILES[1:])[0])
        if paddle.__version__.startswith("2.") and graph.name == GRAPH_FILES[0]:
            raise InputError(
                f"{folder}: was exported by Paddle 3, which this Paddle {paddle.__version__} cannot read; export the "
                "model with this one (Paddle 3 reads that as well), or to ONNX"
            )
        check_operators(graph)
        weights = Path(folder) / GRAPH_WEIGHTS
        with damage_reported(f"{folder}: {GRAPH_WEIGHTS}", COPY):
            check_weights(weights)
            settings = paddle.inference.Config(str(graph), str(weights))
            settings.disable_glog_info()
            if paddle.get_device().startswith("gpu"):
                settings.enable_use_gpu(GPU_MEGABYTES, int(paddle.get_device().partition(":")[2]))
            else:
                settings.disable_gpu()
                settings.disable_mkldnn()  # oneDNN, which was slower where it was measured
                threads = int(os.environ["OMP_NUM_THREADS"])  # set when paddle is imported
                settings.set_cpu_math_library_num_threads(threads)
            self._predictor = paddle.inference.create_predictor(settings)
        self.outputs = self._predictor.get_output_names()
        self._lock = threading.Lock()  # its inputs and outputs are the same objects for every caller

    def run(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs of the graph for a batch; only the graph's inputs are taken from ``batch``."""
        with self._lock:
            for name in self._predictor.get_input_names():
                self._predictor.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(batch[name]))
            self._predictor.run()
            return [self._predictor.get_output_handle(name).copy_to_cpu() for name in self.outputs]
