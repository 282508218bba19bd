"""The files of ``configs/``, which come with the installed package too."""

import os
from pathlib import Path

CONFIGS = "configs"


def shipped(name):
    """The path ``name`` as it is; where there is no such file here, but it is one of ours that begins with
    ``configs/``, the path of ours as str."""
    path = Path(name)
    # os.path.exists, unlike Path.exists, answers without permission and for names that no file can have
    if path.parts[:1] != (CONFIGS,) or os.path.exists(name):
        return name
    tasks = Path(__file__).resolve().parents[2]
    # inside the package where it is installed, beside it in the repository
    homes = (tasks / CONFIGS, tasks.parent / CONFIGS)
    return next((str(file) for home in homes if os.path.isfile(file := home.joinpath(*path.parts[1:]))), name)
