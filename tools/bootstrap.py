"""The tools of this folder are verbs of the command paddle-rope: the same code, with nothing to install."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def door(name, *arguments):
    """``main`` of a tool: ``paddle-rope ARGUMENTS`` and then the arguments that it is given, or those of the process;
    called at once where ``name``, the tool's ``__name__``, is that of a script."""
    from paddle_rope.__main__ import main

    def tool(argv=None):
        return main([*arguments, *(sys.argv[1:] if argv is None else argv)])

    if name == "__main__":
        sys.exit(tool())
    return tool
