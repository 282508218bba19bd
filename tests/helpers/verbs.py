"""Verbs of the command line, as objects with a ``main`` such as the tools have."""

from types import SimpleNamespace

from tasks.commands.main import main


def verb(*words):
    return SimpleNamespace(main=lambda argv: main([*words, *argv]))
