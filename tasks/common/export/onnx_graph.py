"""An ONNX graph, computed by onnxruntime. Without paddle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paddle_rope.machine import physical_cores
from tasks.common.errors import InputError
from tasks.common.export.folder import EXPORTED_FOLDER, ONNX_FILE
from tasks.common.export.operators import check_operators
from tasks.common.model_folder import damage_reported

_ONLY_FATAL = 4  # of the severities of onnxruntime's log


class OnnxGraph:
    """The graph of an exported folder. Threads may share it.

    Args:
        folder: with the file ``model.onnx``.
        device: ``"cpu"``, ``"gpu"`` or ``"gpu:N"``; None takes the GPU where onnxruntime can.

    Raises:
        InputError: onnxruntime is not installed, cannot use the device, or cannot read the graph; or the graph has
            operators or external data that no exported model has.
    """

    def __init__(self, folder: str | os.PathLike, device: str | None = None):
        try:
            import onnxruntime
        except ImportError:
            raise InputError(
                f"{folder}: is an ONNX model, and onnxruntime is not installed; pip install 'paddle_rope[onnx]'"
            ) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or physical_cores())
        options.log_severity_level = _ONLY_FATAL
        # threads that wait in a loop for the next operator take the processor from other processes
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # the shapes of batches differ: arenas for fixed ones only hold memory
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        providers = _providers(device, onnxruntime.get_available_providers())
        check_operators(Path(folder) / ONNX_FILE)
        with damage_reported(folder, ONNX_FILE, EXPORTED_FOLDER):
            self._session = onnxruntime.InferenceSession(
                str(Path(folder) / ONNX_FILE),
                options,
                providers,
                disabled_optimizers=["SkipLayerNormFusion"],  # its kernel is slower than the parts that it fuses
            )
        inputs = (*self._session.get_inputs(), *self._session.get_overridable_initializers())
        self._inputs = {node.name for node in inputs}
        self.outputs = [node.name for node in self._session.get_outputs()]
        self._run_options = onnxruntime.RunOptions()
        self._run_options.only_execute_path_to_fetches = True

    def run(self, batch: dict[str, np.ndarray], outputs: Sequence[str] | None = None) -> list[np.ndarray]:
        """Outputs of the graph by name, None for the first one; of ``batch`` it takes the inputs that it has."""
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
        raise InputError(
            f"--device {device}: onnxruntime cannot use it here; use --device cpu, or install onnxruntime-gpu"
        )
    return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), wanted]
