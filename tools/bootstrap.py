"""The tools of this folder are verbs of the command paddle-rope: the same code, and nothing to install."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def door(*verb):
    """``main`` of a tool: ``paddle-rope VERB`` with the tool's words, those of the process if None are given."""
    from paddle_rope.__main__ import main

    return lambda argv=None: main([*verb, *(sys.argv[1:] if argv is None else argv)])
