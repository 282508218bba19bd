"""The tools of this folder are verbs of the command paddle-rope: the same code, with nothing to install."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main_of(name, *arguments):
    """The function ``main(argv)`` of a tool: it runs ``paddle-rope ARGUMENTS``, followed by ``argv`` or, by default,
    ``sys.argv[1:]``. It is called at once if ``name``, the ``__name__`` of the tool, says that it runs as a script."""
    from paddle_rope.__main__ import main

    def tool(argv=None):
        return main([*arguments, *(sys.argv[1:] if argv is None else argv)])

    if name == "__main__":
        sys.exit(tool())
    return tool
