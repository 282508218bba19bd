"""An exported ONNX graph, computed by OpenVINO."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError
from tasks.common.export.folder import ONNX_FILE


class OpenVinoGraph:
    """As :class:`tasks.common.export.onnx_graph.OnnxGraph`, for one thread of the caller."""

    def __init__(self, folder: str | os.PathLike):
        try:
            import openvino
        except ImportError:
            raise InputError("OpenVINO is not installed; pip install 'paddle_rope[openvino]'") from None
        core = openvino.Core()
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",  # it takes bfloat16 by itself where the processor has it
            "INFERENCE_NUM_THREADS": int(os.environ["OMP_NUM_THREADS"]),
            "NUM_STREAMS": 1,
        }
        model = core.compile_model(core.read_model(Path(folder) / ONNX_FILE), "CPU", settings)
        self._inputs = {port.any_name for port in model.inputs}
        self.outputs = [port.any_name for port in model.outputs]
        self._request = model.create_infer_request()

    def run(self, batch: dict[str, np.ndarray], outputs: Sequence[str] | None = None) -> list[np.ndarray]:
        """Outputs of the graph by name, None for the first one."""
        self._request.infer({name: array for name, array in batch.items() if name in self._inputs}, share_inputs=True)
        return [self._request.get_tensor(name).data.copy() for name in outputs or self.outputs[:1]]
