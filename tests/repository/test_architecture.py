"""Who imports whom: down only, as docs/architecture.md says; the way of a text to a trained step; what an import of the
library loads and changes."""

import ast
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from tests.conftest import REPOSITORY
from tests.tasks.commands.conftest import MODELS, write_models

RECIPES = ("ner", "relations", "matching", "classification", "pretraining", "language_model")
BUILT_ON = {"relations": "ner"}  # the one recipe that a recipe imports
NER_FOLDERS = ("formats", "data", "features", "page", "reports", "prediction")  # from the bottom up


def modules():
    """dict from a module's name to its syntax tree."""
    found = {}
    for folder in ("paddle_rope", "tasks", "tools"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            name = f"paddle_rope.{name}" if folder == "tasks" else name
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
    trees["paddle_rope"] = ast.parse("")  # the public names
    return {name: imported_by(tree, set(trees)) for name, tree in trees.items()}


def is_in(name, *packages):
    return any(name == package or name.startswith(package + ".") for package in packages)


def tasks(*names):
    return [f"paddle_rope.tasks.{name}" for name in names]


TASKS, LAB = "paddle_rope.tasks", tasks("experiments", "commands.experiment", "commands.benchmark")
RULES = [  # (those that import, what they must not import, those among them that may)
    (["paddle_rope"], [TASKS, "tools"], ["paddle_rope.__main__", TASKS]),
    ([TASKS], ["tools"], []),
    (tasks("common"), [TASKS], []),
    *((tasks(one), tasks(*(x for x in RECIPES if x not in (one, BUILT_ON.get(one)))), []) for one in RECIPES),
    ([TASKS], tasks("experiments"), LAB),
    ([TASKS], tasks("serving"), tasks("serving", "commands")),
    ([TASKS], tasks("scaling"), tasks("scaling", "commands", "experiments")),
    ([TASKS], tasks("ner.demo"), tasks("ner.demo", "ner.export", "commands")),
    (["tools"], ["paddle_rope"], ["tools.benchmarks", "tools.check_gpu", "tools.dev"]),
    *((tasks(f"ner.{one}"), tasks("ner.recipe", *(f"ner.{other}" for other in NER_FOLDERS[place:])), [])
      for place, one in enumerate(NER_FOLDERS, 1)),
]  # fmt: skip


def test_imports_keep_the_rules(imports):
    own = {"tools": "paddle_rope.__main__", "paddle_rope.tasks.common": "paddle_rope.tasks.common"}
    assert [
        f"{one} imports {other}"
        for importing, imported, but in RULES
        for one, others in imports.items()
        for other in others
        if is_in(one, *importing) and not is_in(one, *but)
        if is_in(other, *imported) and not is_in(other, own.get(importing[0], "nothing"))
    ] == []


@pytest.mark.parametrize("package", tasks("ner", "common", "experiments", "scaling"))
def test_no_circle_leads_through_folders(imports, package):
    graph = {}  # from a folder or file of the package to those that it imports
    for one, others in imports.items():
        if one.startswith(package + "."):
            part = one.split(".")[3]
            inside = {other.split(".")[3] for other in others if other.startswith(package + ".")}
            graph.setdefault(part, set()).update(inside - {part})
    assert len(graph) > 4
    assert set(TopologicalSorter(graph).static_order()) == set(graph)  # CycleError names a circle


def test_names_of_tests_are_short():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (REPOSITORY / "tests").rglob("test_*.py")}
    names = [node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(names) > 1000 and [name for name in names if name.startswith("test_") and len(name) > 80] == []


def test_equations_have_no_branch_for_a_device_a_graph_or_a_version():
    words = ("computes_on_cpu", "in_dynamic_mode", "get_device", "__version__")
    files = ["rotary.py", "roformer/modeling.py", "attention/*.py", "global_pointer/*.py"]
    paths = [path for pattern in files for path in (REPOSITORY / "paddle_rope").glob(pattern)]
    assert len(paths) > 10
    found = [(path.name, word) for path in paths for word in words if word in path.read_text(encoding="utf-8")]
    assert found == []


def test_names_of_recipes_decide_nothing_outside_of_their_packages_and_the_registry():
    may = [*tasks(*RECIPES, "recipes"), *LAB]
    trees = {name: tree for name, tree in modules().items() if is_in(name, TASKS) and not is_in(name, *may)}
    assert len(trees) > 50
    words = {(name, getattr(node, "value", None)) for name, tree in trees.items() for node in ast.walk(tree)}
    assert {one for one in words if one[1] in RECIPES} == {(f"{TASKS}.common.texts.tables", "ner")}  # of a column
    page = (REPOSITORY / "tasks/serving/page.html").read_text(encoding="utf-8")
    assert [name for name in RECIPES if f'"{name}"' in page] == []


@pytest.mark.slow
def test_a_single_text_reaches_a_trained_step_without_detours():
    words = [sys.executable, "tools/dev/trace_step.py"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    files, functions, moves, operators = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert 20 < files <= 60 < functions and 20 < moves - operators <= 100


# ---- what an import loads
PROGRAMS = [  # (program, what is loaded after it and those before it)
    ("import paddle_rope, paddle_rope.options; dir(paddle_rope)", ""),
    ("from paddle_rope import prepare_process; prepare_process()", ""),
    ("from paddle_rope import CharTokenizer, WordTokenizer, Encoding, load_tokenizer, RoFormerConfig", ""),
    ("from paddle_rope import LinearScaling; import paddle_rope.tasks.experiments.long_range_decay", ""),
    ("from paddle_rope.tasks.ner import NerPredictor; import paddle_rope.tasks.ner.data.reading", ""),
    ("from paddle_rope.tasks.ner.features import WordFeatures; WordFeatures(['dictionary'], {})('他在', [(0, 1)])", ""),
    ("from paddle_rope import RotaryPositionEmbedding, linear_attention, EfficientGlobalPointer", "paddle"),
    ("from paddle_rope import RoFormerModel; RoFormerModel(RoFormerConfig(9, 8, 1, 2, 8))", "paddle"),
    ("from paddle_rope import load; load(f'{home}/ner')(['医院'])", "paddle"),
    ("load(f'{home}/matching').score([('医', '院')])", "paddle"),
    ("load(f'{home}/classification')(['医院'])", "paddle"),
    ("import paddle_rope.tasks.ner.recipe", "jieba paddle paddlenlp"),
]


def run(program, **environment):
    """What a program prints on standard output, in lines; it must end well and silently."""
    environment = environment or dict(os.environ)
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_what_is_imported_and_predicts_loads_no_more_than_it_needs(tmp_path):
    write_models(tmp_path, {recipe: MODELS[recipe] for recipe in ("ner", "matching", "classification")})
    tell = "print(*sorted({'paddle', 'paddlenlp', 'jieba'} & sys.modules.keys()))"
    lines = [f"import sys; home = {str(tmp_path)!r}", *(f"{program}; {tell}" for program, _ in PROGRAMS)]
    assert run("\n".join(lines)) == [loaded for _, loaded in PROGRAMS]


def test_a_static_graph_is_made_without_notes_of_paddle(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import paddle_rope\nfrom paddle_rope import RotaryPositionEmbedding\nimport paddle\n"
        "@paddle.jit.to_static(input_spec=[paddle.static.InputSpec([2])], full_graph=True)\n"
        "def graph(x):\n"
        "    return x + paddle.zeros([2])\n"
        "print(graph(paddle.ones([2])).tolist())\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GLOG_minloglevel"}
    assert run(f"import runpy; runpy.run_path({str(program)!r})", **environment) == ["[1.0, 1.0]"]


def test_an_import_changes_nothing_in_the_environment():
    program = "import os; before = dict(os.environ); import paddle_rope, paddle_rope.roformer.config; "
    program += "from paddle_rope import CharTokenizer; print(dict(os.environ) == before)"
    assert run(program, HOME="/nowhere", PATH=os.environ["PATH"]) == ["True"]
