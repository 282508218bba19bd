"""The command ``paddle-rope``, which is also ``python -m paddle_rope``."""

import importlib
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says; returns the exit status. ``argv``: its words; None for those of the process."""
    _load_tasks()
    return importlib.import_module("tasks.commands.main").main(argv)  # a statement would have mypy read all of tasks


def _load_tasks() -> None:
    """Make ``tasks`` the package beside this one, though another ``tasks`` may come first on ``sys.path``."""
    if "tasks" not in sys.modules:
        home = ROOT / "tasks"
        spec = importlib.util.spec_from_file_location(
            "tasks", home / "__init__.py", submodule_search_locations=[str(home)]
        )
        assert spec and spec.loader
        sys.modules["tasks"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["tasks"])


if __name__ == "__main__":
    if not __package__:  # run as a file
        sys.path[0] = str(ROOT)
    sys.exit(main())
