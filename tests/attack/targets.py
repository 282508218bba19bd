"""The targets by name. Each is made only where it is attacked: some import paddle, or make a model."""

import importlib
import importlib.util
from functools import partial

from tests.attack.cases import Target

_TEXT = (
    *("bio", "bioes", "bmes", "bio_sentences", "bmes_sentences", "brat", "cluener", "doccano", "doccano_entities"),
    *("tokens", "lists", "tables", "columns", "spacy", "gzip"),
    *("cmeee", "jsonl", "labelstudio", "labelstudio_min", "matching", "classification", "stream", "plain"),
)
_YAML = ("configuration", "plan")
_TENSORS = ("safetensors", "torch_zip", "torch_pickle", "paddle_pickle", "index")
_FOLDERS = ("model", "foreign", "exported_onnx", "exported_paddle", "checkpoint", "tensorflow")
_RUN, _SERVER = ("run",), ("request",)


def _of(module, name) -> Target:
    found = importlib.import_module(f"tests.attack.{module}").TARGETS
    return next(target for target in found if target.name == name)


TARGETS = {
    name: partial(_of, module, name)
    for module, names in (
        ("text_targets", _TEXT),
        ("yaml_targets", _YAML),
        ("tensor_targets", _TENSORS),
        ("folder_targets", _FOLDERS),
        ("run_target", _RUN),
        ("server_target", _SERVER),
        ("made_up_target", ("made_up",)),
    )
    for name in names
}
REQUIRED = {  # by some targets: modules, and what pip installs for them
    "exported_onnx": (("onnxruntime",), "'paddle_rope[onnx]'"),
    "request": (("fastapi", "uvicorn", "prometheus_client", "fastapi_offline"), "'paddle_rope[serve]'"),
    "tensorflow": (("tensorflow",), "'tensorflow-cpu<2.20'"),
}
QUICK = (*_TEXT, *_TENSORS, *_YAML)  # need no model


def missing(name: str) -> str | None:
    """What is not installed for a target and how to install it, or None."""
    if name == "exported_onnx":
        from tests.helpers.exports import FORMATS  # imports paddle

        if "onnx" not in FORMATS:
            return "models cannot be exported as ONNX with this Paddle; install Paddle 3"
    modules, packages = REQUIRED.get(name, ((), ""))
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"{', '.join(lacking)} not installed; pip install {packages}" if lacking else None
