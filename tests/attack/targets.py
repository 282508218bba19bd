"""What is attacked: a target, its samples, how it is read; and the targets by name.

A case is a dict from names of files to their bytes: one file, or those of a folder.
"""

import importlib
import importlib.util
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Case = dict[str, bytes]


class SilentLossError(AssertionError):
    """A file was read without an error, and not as it is."""


@dataclass(frozen=True)
class Target:
    """Something that reads what a stranger may have written.

    Attributes:
        name: also of its regressions.
        samples: gives cases that can be read, from which mutants are made. Called once a process.
        mutate: from a case and a ``random.Random`` to a mutant, another dict.
        read: of the folder with the case. It returns, raises one of ``refusals``, or has failed.
        refusals: exceptions that say in one line what is wrong.
        complete: adds to a case of a few files the others of the sample: regressions hold what differs from it.
    """

    name: str
    samples: Callable[[], list[Case]]
    mutate: Callable
    read: Callable[[Path], None]
    refusals: tuple
    complete: Callable[[Case], Case] = dict


def write_case(folder: Path, case: Case) -> None:
    """Write the files of a case into a folder, in which no others are left."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in case.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_case(folder: Path) -> Case:
    """The files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def json_bytes(value) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _obey(folder):
    """Do what a case orders: the target that tests the attack."""
    order = (folder / "order").read_bytes()
    if order == b"hang":
        while True:
            pass
    if order == b"grow":
        bytearray(2 << 30)
    if order == b"die":
        os.abort()
    if order == b"fail":
        raise KeyError("x")


def _order(case, rng):
    return {"order": rng.choice((b"read", b"fail"))}


MADE_UP = Target("made_up", lambda: [{"order": b"read"}], _order, _obey, (ValueError,))
# The targets of each module, which is imported only when one of them is attacked: some import paddle, or make a model.
MODULES = {
    "text_targets": (
        *("bio", "bioes", "bmes", "bio_sentences", "bmes_sentences", "brat", "cluener", "doccano", "doccano_entities"),
        *("tokens", "lists", "tables", "columns", "spacy", "gzip", "cmeee", "jsonl", "labelstudio", "labelstudio_min"),
        *("matching", "classification", "stream", "plain"),
    ),
    "tensor_targets": ("safetensors", "torch_zip", "torch_pickle", "paddle_pickle", "index"),
    "settings_targets": ("configuration", "plan", "run", "request"),
    "folder_targets": (
        *("model", "foreign", "foreign_value", "exported_onnx", "exported_paddle", "checkpoint", "tensorflow"),
    ),
}
OF_FILES = (*MODULES["text_targets"], *MODULES["tensor_targets"])  # read quickly, and need no model
NAMES = [name for names in MODULES.values() for name in names]
REQUIRED = {  # by some targets: modules, and what pip installs for them
    "exported_onnx": (("onnxruntime",), "'paddle_rope[onnx]'"),
    "request": (("fastapi", "uvicorn", "prometheus_client", "fastapi_offline"), "'paddle_rope[serve]'"),
    "tensorflow": (("tensorflow",), "'tensorflow-cpu<2.20'"),
}


def get_target(name: str) -> Target:
    if name == "made_up":
        return MADE_UP
    module = next(module for module, names in MODULES.items() if name in names)
    return next(one for one in importlib.import_module(f"tests.attack.{module}").TARGETS if one.name == name)


def missing(name: str) -> str | None:
    """What is not installed for a target and how to install it, or None."""
    if name == "exported_onnx":
        from tests.helpers.exports import FORMATS  # imports paddle

        if "onnx" not in FORMATS:
            return "models cannot be exported as ONNX with this Paddle; install Paddle 3"
    modules, packages = REQUIRED.get(name, ((), ""))
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"{', '.join(lacking)} not installed; pip install {packages}" if lacking else None
