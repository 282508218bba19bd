"""The Chinese catalogue of messages: ``python -m tests.catalogue`` gives it an empty entry for each new message of the
code, removes those of messages that are gone, and compiles it."""

import argparse
import ast
import inspect
import re
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "tasks/locale/zh/LC_MESSAGES"
PO, MO = FOLDER / "paddle_rope.po", FOLDER / "paddle_rope.mo"
TEMPLATES = ("InputError", "Message", "tr")  # functions of a template and its values
TITLES = ("terminal_table", "print_score_rows", "add_argument_group")  # functions whose strings all are messages
# What argparse says in a terminal.
OF_ARGPARSE = (
    "usage: ", "positional arguments", "options", "show this help message and exit", "%(heading)s:",
    "the following arguments are required: %s", "expected one argument", "expected at least one argument",
    "unrecognized arguments: %s", "argument %(argument_name)s: %(message)s", "invalid %(type)s value: %(value)r",
    "invalid choice: %(value)r (choose from %(choices)s)", "ambiguous option: %(option)s could match %(matches)s",
)  # fmt: skip


def messages() -> tuple[dict[str, str], list[str]]:
    """(dict from each message of the code to its place, places of f-strings and others that cannot be translated)."""
    found, lost = {}, []
    for root in ("tasks", "tools"):
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            tree, name = ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(REPOSITORY))
            constants = _constants(tree)
            for call in ast.walk(tree):
                for node in _texts(call) if isinstance(call, ast.Call) else ():
                    place = f"{name}:{node.lineno}"
                    text = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
                    if isinstance(text, str) and _has_words(text):
                        found.setdefault(text, place)
                    elif isinstance(node, ast.JoinedStr):
                        lost.append(place)
    said = {node.value for node in ast.walk(ast.parse(inspect.getsource(argparse))) if isinstance(node, ast.Constant)}
    return {**{text: "argparse" for text in OF_ARGPARSE if text in said}, **found}, lost


def template_calls():
    """(place, template, names of the values) of each message with values."""
    for root in ("tasks", "tools"):
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = _constants(tree)
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and _name(call) in TEMPLATES and call.args and call.keywords:
                    node, names = call.args[0], {word.arg for word in call.keywords}
                    text = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
                    if isinstance(text, str) and None not in names:
                        yield f"{path.relative_to(REPOSITORY)}:{call.lineno}", text, names


def _texts(call):
    """The nodes of a call's messages."""
    name = _name(call)
    if name in TEMPLATES:
        return [node for node in call.args[:1] if isinstance(node, (ast.Constant, ast.Name, ast.JoinedStr))]
    if name == "new_parser":
        return [node for node in call.args[1:] if isinstance(node, (ast.Constant, ast.Name, ast.JoinedStr))]
    if name == "option":  # a configuration key: its default and its meaning
        return [node for node in call.args[1:] if isinstance(node, ast.Constant)]
    if name == "add_argument":
        return [word.value for word in call.keywords if word.arg == "help"]
    if name in TITLES:
        lists = [node.elts if isinstance(node, ast.Tuple) else [node] for node in call.args]
        return [node for nodes in lists for node in nodes if isinstance(node, ast.Constant)]
    return []


def _has_words(text):
    """Whether there is anything to translate; what joins words is a message without values."""
    return bool(text) and ("{" not in text or re.search("[A-Za-z]{2}", re.sub(r"\{.*?\}", "", text)))


def _name(call):
    return getattr(call.func, "id", None) or getattr(call.func, "attr", None)


def _constants(tree):
    """dict from the names of a module to the strings that are assigned to them."""
    found = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        ):
            found[node.targets[0].id] = node.value.value
    return found


def read():
    """The catalogue in the repository."""
    with open(PO, encoding="utf-8") as file:
        return read_po(file, locale="zh")


def main():
    before = read()
    catalogue = Catalog(
        "zh", project="paddle_rope", header_comment=before.header_comment, revision_date=before.revision_date,
        creation_date=before.creation_date, fuzzy=False,
    )  # fmt: skip
    for text in messages()[0]:
        known = before.get(text)
        catalogue.add(text, known.string if known else "", flags=() if known is None else known.flags - {"fuzzy"})
    with open(PO, "wb") as file:
        write_po(file, catalogue, width=120, sort_output=True)
    with open(MO, "wb") as file:
        write_mo(file, catalogue)
    empty = [message.id for message in catalogue if message.id and not message.string]
    print(f"{len(catalogue)} messages, {len(empty)} without a translation")
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main())
