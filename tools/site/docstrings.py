"""Docstrings as Markdown, for mkdocstrings: "Example:" is a section of code, and roles of Sphinx are names."""

import re

import griffe

ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


class AsMarkdown(griffe.Extension):
    """Rewrites the docstring of every object that mkdocstrings reads."""

    def on_instance(self, *, obj, **_):
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
