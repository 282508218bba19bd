"""A static graph, computed by Paddle Inference."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import paddle
from paddle import inference

from tasks.common.errors import InputError
from tasks.common.export.folder import EXPORTED_FOLDER, GRAPH_FILES, WEIGHTS_FILE
from tasks.common.export.operators import check_operators
from tasks.common.model_folder import damage_reported
from tasks.common.process import choose_device

GPU_MEGABYTES = 256  # at the beginning; Paddle takes more as it needs more


class PaddleGraph:
    """The graph of an exported folder. Threads may share it; it serves one at a time.

    Args:
        folder: with one of ``GRAPH_FILES`` and the weights.
        device: as of :func:`tasks.common.process.choose_device`.

    Raises:
        InputError: the device cannot be used, this Paddle cannot read the graph, or the graph has operators that no
            exported model has.
    """

    def __init__(self, folder: str | os.PathLike, device: str | None = None):
        choose_device(device)
        graph = next(file for name in GRAPH_FILES if (file := Path(folder) / name).is_file())
        if paddle.__version__.startswith("2.") and graph.name == GRAPH_FILES[0]:
            raise InputError(
                f"{folder}: was exported by Paddle 3, which this Paddle {paddle.__version__} cannot read; export the "
                "model with this one (Paddle 3 reads that, too), or to ONNX"
            )
        check_operators(graph)
        with damage_reported(folder, WEIGHTS_FILE, EXPORTED_FOLDER):
            self._predictor = inference.create_predictor(_settings(graph, Path(folder) / WEIGHTS_FILE))
        self.outputs = self._predictor.get_output_names()
        self._lock = threading.Lock()  # its inputs and outputs are the same objects for every caller

    def run(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Outputs of the graph for a batch; of ``batch`` it takes the inputs that it has."""
        with self._lock:
            for name in self._predictor.get_input_names():
                self._predictor.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(batch[name]))
            self._predictor.run()
            return [self._predictor.get_output_handle(name).copy_to_cpu() for name in self.outputs]


def _settings(graph, weights):
    settings = inference.Config(str(graph), str(weights))
    settings.disable_glog_info()
    device = paddle.get_device()
    if device.startswith("gpu"):
        settings.enable_use_gpu(GPU_MEGABYTES, int(device.partition(":")[2]))
    else:
        settings.disable_gpu()
        settings.disable_mkldnn()  # oneDNN; slower where it was measured
        settings.set_cpu_math_library_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # set when paddle is imported
    return settings
