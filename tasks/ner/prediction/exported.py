"""Trained NER models as static graphs that Paddle Inference runs: for use, not for training."""

import os
import threading
import warnings
from pathlib import Path

import paddle
from paddle import inference
from paddle.static import InputSpec

from tasks.common.errors import InputError
from tasks.common.model_folder import damage_reported
from tasks.ner.data.download import file_sha256
from tasks.ner.features import COLUMNS
from tasks.ner.model import NerConfig, NerModel

WEIGHTS_FILE = "inference.pdiparams"
# Paddle 3 writes the first and reads both, Paddle 2 knows the second only.
GRAPH_FILES = ("inference.json", "inference.pdmodel")
CHECKSUMS_FILE = "inference.sha256"  # as of the program sha256sum
GPU_MEGABYTES = 256  # at the beginning; Paddle takes more as it needs more


class ExportedNerModel:
    """The graph of a folder as a :class:`~tasks.ner.model.NerModel` for prediction.

    Args:
        folder: that :func:`write_graph` wrote into.
        config: of the model.

    Raises:
        InputError: the graph is damaged.
    """

    training = False
    decode = NerModel.decode
    scores_of_text = NerModel.scores_of_text

    def __init__(self, folder: str | os.PathLike, config: NerConfig):
        self.config = config
        with damage_reported(folder, WEIGHTS_FILE):
            self._predictor = inference.create_predictor(_settings(folder))
        self._lock = threading.Lock()  # its inputs and outputs are the same objects for every caller

    def eval(self):
        """It is never in training."""
        return self

    def __call__(self, **batch):
        """Logits of a batch of tensors, named as the arguments of :meth:`tasks.ner.model.NerModel.forward`."""
        with self._lock:
            for name in self._predictor.get_input_names():
                self._predictor.get_input_handle(name).copy_from_cpu(batch[name].numpy())
            self._predictor.run()
            (name,) = self._predictor.get_output_names()
            return paddle.to_tensor(self._predictor.get_output_handle(name).copy_to_cpu())


def is_exported(folder: str | os.PathLike) -> bool:
    """Whether a folder holds an exported model."""
    return (Path(folder) / CHECKSUMS_FILE).is_file()


def check_graph(folder: str | os.PathLike) -> None:
    """Raise InputError unless the folder of an exported model has the files that were written, and this Paddle reads
    them."""
    folder = Path(folder)
    with damage_reported(folder, CHECKSUMS_FILE):
        written = dict(reversed(line.split()) for line in (folder / CHECKSUMS_FILE).read_text("utf-8").splitlines())
    for name, digest in written.items():
        if not (folder / name).is_file() or file_sha256(folder / name) != digest:
            raise InputError(f"{folder / name}: is not the file that was exported; copy the whole folder again")
    if paddle.__version__.startswith("2.") and GRAPH_FILES[0] in written:
        raise InputError(
            f"{folder}: was exported by Paddle 3, which this Paddle {paddle.__version__} cannot read; export the model "
            "with this one (Paddle 3 reads that, too)"
        )


def write_graph(model: NerModel, folder: str | os.PathLike) -> None:
    """Write a model for texts of any number and length into an existing folder.

    Its inputs are those of :meth:`tasks.ner.model.NerModel.forward` without ``labels``, its output the logits.

    Args:
        model: :class:`~tasks.ner.model.NerModel` or :class:`~tasks.ner.prediction.ensemble.NerEnsemble`, which can
            be neither trained nor called afterwards.
        folder: for :data:`WEIGHTS_FILE`, one of :data:`GRAPH_FILES`, and their SHA-256 in :data:`CHECKSUMS_FILE`.
    """
    model.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of Paddle, on calls inside Paddle
        graph = paddle.jit.to_static(model, input_spec=_inputs(model.config.features), full_graph=True)
        paddle.jit.save(graph, str(Path(folder) / Path(WEIGHTS_FILE).stem))
    # Paddle 2.6.2 dies of some damaged graphs
    files = [file for name in (*GRAPH_FILES, WEIGHTS_FILE) if (file := Path(folder) / name).is_file()]
    lines = [f"{file_sha256(file)}  {file.name}\n" for file in files]
    (Path(folder) / CHECKSUMS_FILE).write_text("".join(lines), encoding="utf-8")


def _inputs(features):
    """What :class:`~tasks.ner.batching.SpanCollator` makes of texts, in the order of the model's arguments."""
    inputs = [
        InputSpec([None, None], "int64", "input_ids"),
        InputSpec([None, None], "bool", "attention_mask"),
        InputSpec([None, None], "bool", "token_mask"),
    ]
    columns = 0 if features is None else sum(COLUMNS[kind] for kind in features["tables"])
    flags = 0 if features is None else features["flags"]
    inputs.append(InputSpec([None, None, columns], "int64", "columns") if columns else None)
    inputs.append(InputSpec([None, None, flags], "bool", "flags") if flags else None)
    return inputs


def _settings(folder):
    graph = next(file for name in GRAPH_FILES if (file := Path(folder) / name).is_file())
    settings = inference.Config(str(graph), str(Path(folder) / WEIGHTS_FILE))
    settings.disable_glog_info()
    device = paddle.get_device()
    if device.startswith("gpu"):
        settings.enable_use_gpu(GPU_MEGABYTES, int(device.partition(":")[2]))
    else:
        settings.disable_gpu()
        settings.disable_mkldnn()  # oneDNN; slower where it was measured
        settings.set_cpu_math_library_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # set when paddle is imported
    return settings
