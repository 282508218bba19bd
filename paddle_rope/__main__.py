"""The command ``paddle-rope``, which is also ``python -m paddle_rope``."""

import importlib
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command ``argv`` (default: ``sys.argv[1:]``) and return its exit status."""
    return importlib.import_module("paddle_rope.tasks.commands.main").main(argv)  # an import would make mypy read tasks


if __name__ == "__main__":
    sys.exit(main())
