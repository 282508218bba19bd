"""Docstrings as Markdown, for mkdocstrings: examples are sections of code, and roles of Sphinx are names."""

import re
import textwrap

import griffe

ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")
TAG = re.compile(r"(`[^`]*`)|<(?=\w)")  # <R_m q, R_n k> is no tag of HTML; code stays as it is
BARE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)  # an example without a heading


class AsMarkdown(griffe.Extension):
    """Rewrites the docstring of every object that mkdocstrings reads."""

    def on_instance(self, *, obj, **_):
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            text = TAG.sub(lambda match: match[1] or "&lt;", text)
            text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
            obj.docstring.value = BARE.sub(lambda lines: "Examples:\n" + textwrap.indent(lines[0], "    "), text)
