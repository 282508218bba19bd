"""The command ``paddle-rope``, which is also ``python -m paddle_rope``."""

import importlib
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(argv: list[str] | None = None) -> int:
    """Run the command ``argv`` (default: ``sys.argv[1:]``) and return its exit status."""
    _load_tasks()
    return importlib.import_module("tasks.commands.main").main(argv)  # an import would make mypy read all of tasks


def _load_tasks() -> None:
    """Import ``tasks`` from the folder next to this package, even if ``sys.path`` has another package of that name."""
    if "tasks" not in sys.modules:
        folder = ROOT / "tasks"
        spec = importlib.util.spec_from_file_location(
            "tasks", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec and spec.loader
        sys.modules["tasks"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["tasks"])


if __name__ == "__main__":
    if not __package__:  # run as a file
        sys.path[0] = str(ROOT)
    sys.exit(main())
