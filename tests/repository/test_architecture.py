"""Who imports whom, read from the source: imports go down only, as docs/architecture.md says."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ("ner", "matching", "classification", "pretraining", "language_model")
NER_FOLDERS = ("formats", "data", "features", "page", "prediction", "reports")  # from the bottom up


def modules():
    """dict from a module's name to its syntax tree."""
    found = {}
    for folder in ("paddle_rope", "tasks", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported_by(tree, known):
    """The names of the project's modules that a module imports, at its top or when something is called."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update((inner & known) or {node.module})
    return found & known


@pytest.fixture(scope="module")
def imports():
    trees = modules()
    return {name: imported_by(tree, set(trees)) for name, tree in trees.items()}


def is_in(name, package):
    return name == package or name.startswith(package + ".")


def recipe_of(name):
    return next((recipe for recipe in RECIPES if is_in(name, f"tasks.{recipe}")), None)


# name -> whether a module must not import another
RULES = {
    "paddle_rope imports nothing of tasks and tools, but for the entry point of the command": lambda one, other: (
        is_in(one, "paddle_rope") and not is_in(other, "paddle_rope") and one != "paddle_rope.__main__"
    ),
    "tasks imports nothing of tools": lambda one, other: is_in(one, "tasks") and is_in(other, "tools"),
    "tasks.common imports nothing of the rest of tasks": lambda one, other: (
        is_in(one, "tasks.common") and is_in(other, "tasks") and not is_in(other, "tasks.common")
    ),
    "one recipe does not import another": lambda one, other: (
        recipe_of(one) is not None and recipe_of(other) not in (None, recipe_of(one))
    ),
    "of tasks, only tasks.commands imports tasks.experiments, for its own verbs": lambda one, other: (
        is_in(one, "tasks")
        and is_in(other, "tasks.experiments")
        and not is_in(one, "tasks.experiments")
        and one != "tasks.commands.experiment"
        and not is_in(one, "tasks.commands.benchmark")
    ),
    "of tasks, only tasks.commands imports tasks.serving": lambda one, other: (
        is_in(one, "tasks")
        and is_in(other, "tasks.serving")
        and not is_in(one, "tasks.serving")
        and not is_in(one, "tasks.commands")
    ),
    "of tasks, only tasks.commands and tasks.experiments import tasks.scaling": lambda one, other: (
        is_in(one, "tasks")
        and is_in(other, "tasks.scaling")
        and not any(is_in(one, f"tasks.{name}") for name in ("scaling", "commands", "experiments"))
    ),
    "only tasks.commands imports the demo corpus": lambda one, other: (
        is_in(one, "tasks")
        and is_in(other, "tasks.ner.demo")
        and not is_in(one, "tasks.ner.demo")
        and not is_in(one, "tasks.commands")
    ),
    "tools import the entry point of the command only": lambda one, other: (
        is_in(one, "tools") and not is_in(other, "tools") and other not in ("paddle_rope.__main__",)
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_imports_keep_the_rule(imports, rule):
    is_wrong = RULES[rule]
    assert [
        f"{one} imports {other}" for one, others in imports.items() for other in others if is_wrong(one, other)
    ] == []


def parts_of(imports, package):
    """dict from a folder or file of a package to those of the same package that it imports."""
    graph = {}
    for one, others in imports.items():
        if one.startswith(package + "."):
            part = one.split(".")[2]
            inside = {other.split(".")[2] for other in others if other.startswith(package + ".")}
            graph.setdefault(part, set()).update(inside - {part})
    return graph


@pytest.mark.parametrize("package", ["tasks.ner", "tasks.common", "tasks.experiments", "tasks.scaling"])
def test_no_circle_leads_through_folders(imports, package):
    graph = parts_of(imports, package)
    assert len(graph) > 5
    assert set(TopologicalSorter(graph).static_order()) == set(graph)  # CycleError names a circle


def test_folders_of_ner_import_only_those_below(imports):
    graph = parts_of(imports, "tasks.ner")
    for place, folder in enumerate(NER_FOLDERS):
        assert graph[folder].isdisjoint(NER_FOLDERS[place + 1 :]), folder
        assert "recipe" not in graph[folder]
