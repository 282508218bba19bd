"""Files of tensors: safetensors, both formats of torch.save, paddle.save, and indices of several files."""

import json
import pickle
import struct
from pathlib import Path

import numpy as np

from paddle_rope.roformer.checkpoints.tensor_files import TensorFileError, read_tensors
from tests.attack.binaries import change_pickle, change_safetensors, change_zip
from tests.attack.cases import SilentLossError, Target, json_bytes
from tests.attack.mutators import OF_BYTES, mutate
from tests.attack.trees import change_json

DATA = Path(__file__).resolve().parents[1] / "paddle_rope" / "roformer" / "data" / "torch_files"
ARRAYS = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.arange(5, dtype=np.float16),
    "c": np.ones(()),
}


def _change(*mutators, share=0.2):
    def change(case, rng):
        name = rng.choice(sorted(case))
        chosen = OF_BYTES if rng.random() < share else mutators
        return {**case, name: mutate(case[name], rng, chosen)}

    return change


def _safetensors(arrays=None):
    from safetensors.numpy import save

    return save(arrays or ARRAYS)


def _paddle_pickles():
    arrays = {
        "a.weight": ("linear_0.w_0", ARRAYS["a.weight"]),
        "StructuredToParameterName@@": {"a.weight": "linear_0.w_0"},
    }
    names = {**ARRAYS, "d": ARRAYS["a.weight"].T, "e": np.array([True, False])}
    return [pickle.dumps(arrays, 2), pickle.dumps(names, 4), pickle.dumps(names, 2)]


def read_file(folder: Path) -> None:
    """The file of tensors in ``folder``; of safetensors the names, shapes and bytes are compared with the header."""
    path = folder / ("model.safetensors.index.json" if len(list(folder.iterdir())) > 1 else next(folder.iterdir()).name)
    tensors = read_tensors(path)
    for name, array in tensors.items():
        array.sum(dtype=np.float64) if array.size < 1000 else None  # its memory is there
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise SilentLossError(f"{name!r} is {type(array).__name__}")
    if path.suffix == ".safetensors":
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
        header.pop("__metadata__", None)
        if {name: of["shape"] for name, of in header.items()} != {name: list(of.shape) for name, of in tensors.items()}:
            raise SilentLossError("names or shapes are not those of the header")


def _index_samples():
    parts = {"one.safetensors": {"a.weight": ARRAYS["a.weight"]}, "two.safetensors": {"b": ARRAYS["b"]}}
    index = {"metadata": {"total_size": 100}, "weight_map": {"a.weight": "one.safetensors", "b": "two.safetensors"}}
    files = {name: _safetensors(arrays) for name, arrays in parts.items()}
    return [{**files, "model.safetensors.index.json": json_bytes(index)}]


def _change_index(case, rng):
    name = "model.safetensors.index.json"
    return {**case, name: mutate(case[name], rng, (*OF_BYTES, *[change_json] * 9))}


TARGETS = [
    Target(
        "safetensors",
        lambda: [{"m.safetensors": _safetensors()}],
        _change(change_safetensors),
        read_file,
        (TensorFileError,),
    ),
    Target(
        "torch_zip",
        lambda: [{"m.bin": (DATA / "zip.bin").read_bytes()}],
        _change(change_zip, share=0.1),
        read_file,
        (TensorFileError,),
    ),
    Target(
        "torch_pickle",
        lambda: [{"m.bin": (DATA / "legacy.bin").read_bytes()}],
        _change(change_pickle),
        read_file,
        (TensorFileError,),
    ),
    Target(
        "paddle_pickle",
        lambda: [{"m.pdparams": content} for content in _paddle_pickles()],
        _change(change_pickle),
        read_file,
        (TensorFileError,),
    ),
    Target("index", _index_samples, _change_index, read_file, (TensorFileError,)),
]
