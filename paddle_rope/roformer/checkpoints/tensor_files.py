"""Read files of named tensors as numpy arrays: safetensors, PyTorch, Paddle, and checkpoints split into parts; write
safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors

from paddle_rope.roformer.checkpoints.pickled_tensors import NotTensors, bfloat16_to_float32, read_paddle, read_torch

if TYPE_CHECKING:
    from paddle import Tensor

# In the order in which a folder is searched; instead of a file there may be an index of its parts, NAME.index.json.
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin", "model_state.pdparams")
INDEX = ".index.json"
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
DTYPES["BOOL"] = "?"
LONGEST_MESSAGE = 1000  # characters


class TensorFileError(ValueError):
    """A file of tensors cannot be read; the message says which, why, and what to do."""

    def __init__(self, message: str) -> None:
        # the message may quote the file
        line = "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]} [...]")


def as_safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a safetensors file with the tensors in their own dtypes, bfloat16 too."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}  # bfloat16 as uint16, its bits
    specs = {
        name: safetensors.TensorSpec(
            dtype=str(tensor.dtype).rpartition(".")[2],  # "paddle.float32"
            shape=tensor.shape,
            data_ptr=arrays[name].ctypes.data,
            data_len=arrays[name].nbytes,
        )
        for name, tensor in tensors.items()
    }
    return bytes(safetensors.serialize(specs, metadata={"format": "np"}))


def find_weights(folder: str | os.PathLike) -> Path | None:
    """The weight file in ``folder``, or None: the first of ``WEIGHT_FILES`` and their indices that exists."""
    names = [name for stem in WEIGHT_FILES for name in (stem, stem + INDEX)]
    return next((Path(folder) / name for name in names if (Path(folder) / name).is_file()), None)


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """``{name: array}`` of a file of tensors, in the file's types; bfloat16 becomes float32. Nothing in it is executed.

    The file is ``.safetensors``, ``.bin`` (``torch.save``), ``.pdparams`` (``paddle.save``), or ``*.index.json``, which
    names such files in its folder. Raises TensorFileError if it is damaged, of another kind, or a pickle that names
    anything except tensors.
    """
    path = Path(path)
    readers = {".safetensors": _read_safetensors, ".bin": read_torch, ".pdparams": read_paddle, ".json": _read_index}
    if path.suffix not in readers:
        raise TensorFileError(f"{path}: not a file of tensors; one ends in {', '.join(readers)}")
    try:
        return readers[path.suffix](path)
    except TensorFileError:  # of a file that an index names
        raise
    except NotTensors as error:
        raise TensorFileError(f"{path}: {error}; copy, download or convert it again, from a source you trust") from None
    except OSError as error:
        raise TensorFileError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # damaged bytes can raise anything in the libraries that read them
        what = f"is damaged or cut short ({str(error)[:200] or type(error).__name__})"
        raise TensorFileError(f"{path}: {what}; copy or download it again") from None


def _read_safetensors(path):
    tensors = {}
    for name, tensor in safetensors.deserialize(path.read_bytes()):
        dtype, data = tensor["dtype"], tensor["data"]
        if dtype in ("BF16", "U16"):  # U16: how PaddleNLP writes bfloat16
            array = bfloat16_to_float32(np.frombuffer(data, "<u2"))
        elif dtype in DTYPES:
            array = np.frombuffer(data, DTYPES[dtype])
        else:
            raise NotTensors(f"holds {name} as {dtype}, which is not supported")
        tensors[name] = array.reshape(tensor["shape"])
    return tensors


def _read_index(path):
    """The tensors of all files that ``weight_map`` names."""
    files = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
    tensors = {}
    for name in sorted(set(files.values())):
        if Path(name).name != name or name.endswith(INDEX):
            raise NotTensors(f"holds the name {name[:80]!r}, which is no file of its folder")
        tensors.update(read_tensors(path.parent / name))
    missing = sorted(set(files) - set(tensors))
    if missing:
        raise NotTensors(f"is not complete: its files lack {', '.join(missing)}")
    return tensors
