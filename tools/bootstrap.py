"""The tools of this folder are verbs of the command paddle-rope: the same code, with nothing to install."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def door(name, *verb):
    """``main`` of a tool: ``paddle-rope VERB`` with words of its own, or those of the process; called at once where
    ``name``, the tool's ``__name__``, is that of a script."""
    from paddle_rope.__main__ import main

    def tool(argv=None):
        return main([*verb, *(sys.argv[1:] if argv is None else argv)])

    if name == "__main__":
        sys.exit(tool())
    return tool
