"""The files of ``configs/``, which come with the installed package too."""

import os
from pathlib import Path

CONFIGS = "configs"


def shipped_names(missing):
    """The names of our configurations, such as ``configs/ner/demo.yaml``: those of the folder that a missing file
    names, or else the recipes'."""
    folder = Path(missing).parts[1:2] if Path(missing).parts[:1] == (CONFIGS,) else ()
    found = sorted({f"{CONFIGS}/{path.parent.name}/{path.name}" for home in _homes() for path in home.glob("*/*.yaml")})
    of_folder = [name for name in found if folder and name.startswith(f"{CONFIGS}/{folder[0]}/")]
    return of_folder or [name for name in found if not name.startswith(f"{CONFIGS}/experiments/")]


def shipped(name):
    """The path ``name`` as it is; where there is no such file here, but it is one of ours that begins with
    ``configs/``, the path of ours as str."""
    path = Path(name)
    # os.path.exists, unlike Path.exists, answers without permission and for names that no file can have
    if path.parts[:1] != (CONFIGS,) or os.path.exists(name):
        return name
    return next((str(file) for home in _homes() if os.path.isfile(file := home.joinpath(*path.parts[1:]))), name)


def _homes():
    """Where ours may be: inside the package where it is installed, beside it in the repository."""
    tasks = Path(__file__).resolve().parents[2]
    return tasks / CONFIGS, tasks.parent / CONFIGS
