"""What the README, the documents and the tutorial show runs as they show it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paddle_rope import CharTokenizer, RoFormerConfig, RoFormerForMaskedLM, load
from paddle_rope.__main__ import main
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES, write_demo_corpus
from tests.helpers.models import FORMATS, export, needs_onnx, write_small_ner
from tests.repository.test_pages import ONCE, REPOSITORY, blocks, commands
from tests.tasks.conftest import blank_pictures
from tests.tasks.serving.conftest import running

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SMALL = {**SIZES, "num_train_epochs": 1, "device": "cpu"}
SMALL_WORDS = [f"--{key}={value}" for key, value in SMALL.items()]


@pytest.fixture(scope="module", autouse=True)
def without_pictures():
    with blank_pictures():
        yield


@pytest.fixture(scope="module")
def ner_folder(tmp_path_factory):
    """A folder where the README's commands on the user's own data have run, with a tiny model."""
    folder = tmp_path_factory.mktemp("own_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["demo", "ner", "demo"]) == 0
        Path("my").mkdir()
        for source, target, size in (("train", "data", 60), ("dev", "test", 10)):
            lines = Path(f"demo/{source}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
            Path(f"my/{target}.jsonl").write_text("".join(lines[:size]), encoding="utf-8")
        Path("texts.txt").write_text("\n".join(UNSEEN_SENTENCES), encoding="utf-8")
        for program, *words in commands("README.md"):
            if program == ".venv/bin/paddle-rope":
                more = ["--pretrained=", *SMALL_WORDS, "--masked_lm_epochs=1"] if words[0] == "train" else []
                more = ["--format", FORMATS[0]] if words[0] == "export" else more
                assert main([*words, *more]) == 0
    return folder


@pytest.mark.slow
def test_commands_on_own_data_leave_what_they_name(ner_folder):
    assert {"precision", "recall", "f1"} <= json.loads((ner_folder / "scores.json").read_text(encoding="utf-8")).keys()
    records = map(json.loads, (ner_folder / "entities.jsonl").read_text(encoding="utf-8").splitlines())
    assert [record["text"] for record in records] == list(UNSEEN_SENTENCES)
    assert (ner_folder / "entities.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


EXPORTS = "docs/guides/python.md"
WITH_PYTHON = [page for page in ONCE if blocks(page, "python") and page != EXPORTS]


@pytest.mark.slow
@pytest.mark.parametrize("page", [*WITH_PYTHON, pytest.param(EXPORTS, marks=needs_onnx)])
def test_python_runs(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    # the model folders that the page's Python names
    if page == "README.md":
        Path("runs").symlink_to(request.getfixturevalue("ner_folder") / "runs")
    elif page == "docs/guides/matching.md":
        assert main(["demo", "matching", "runs/demo_matching_data"]) == 0
        assert main(["train", "configs/matching/demo.yaml", *SMALL_WORDS, "--output_dir", "runs/mine"]) == 0
    elif page == "docs/guides/checkpoints.md":
        tokenizer = CharTokenizer.from_corpus(UNSEEN_SENTENCES)
        for folder, position in (("roformer_chinese_base", "qk"), ("bert-base-chinese", "learned")):
            config = RoFormerConfig(len(tokenizer), **SIZES, position_embedding=position)
            RoFormerForMaskedLM(config).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    names = {}
    for block in blocks(page, "python"):
        exec(block.replace("train_size=300, dev_size=60", "train_size=150, dev_size=30"), names)  # faster
    shapes = {"logits": [1, 10, 40, 40]} if "logits" in names else {}
    shapes |= {"q": [1, 5000, 12, 64]} if page == "README.md" else {}
    assert {name: names[name].shape for name in shapes} == shapes
    if page == "docs/guides/library.md":  # the training loop has learned its spans, whose ends are exclusive
        found = [[(one.type, one.start - 1, one.end - 2) for one in spans] for spans in names["found"]]
        assert [sorted(spans) for spans in found] == names["gold"]


# ---- the programs of tools/clients/
CLIENTS = REPOSITORY / "tools" / "clients"


@pytest.mark.slow
@pytest.mark.parametrize("words", [(sys.executable, CLIENTS / "client.py"), ("node", CLIENTS / "client.mjs")], ids=str)
def test_a_client_of_the_service_runs(words, tmp_path):
    if shutil.which(words[0]) is None:
        pytest.skip("NOT TESTED: the client in JavaScript; it takes Node.js")
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_ner"}', encoding="utf-8")
    with running(REPOSITORY / "tests" / "tasks" / "serving" / "stub_service.py", tmp_path) as client:
        url = f"http://127.0.0.1:{client.port}/predict"
        done = subprocess.run([*words, url, "echo"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_onnx
def test_a_program_without_this_package_finds_what_the_exported_model_finds(tmp_path):
    examples = read_examples(write_demo_corpus(tmp_path, train_size=60, dev_size=1)[0])
    exported = export(tmp_path / "exported", "onnx", write_small_ner(tmp_path / "model", examples))
    texts = ["叶老桂在浙商银行工作。", "好"]
    program = [sys.executable, CLIENTS / "graph.py", exported, *texts]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    printed = sorted((text, kind, float(probability)) for text, kind, probability in map(str.split, printed))
    found = [one for record in load(exported)(texts) for one in record["entities"]]
    found = sorted((one["text"], one["type"], one["probability"]) for one in found)
    assert [one[:2] for one in printed] == [one[:2] for one in found] and len(found) > 5
    assert [one[2] for one in printed] == pytest.approx([one[2] for one in found], abs=0.006)


VERBS = f'PYTHONPATH={REPOSITORY} exec {sys.executable} -m paddle_rope "$@"'


def write_program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path):
    """The repository by links, with an environment that is set up already and a demo of one short epoch."""
    for path in REPOSITORY.iterdir():
        if path.name not in (".git", ".venv", "configs", "runs", "data"):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(REPOSITORY / "configs", tmp_path / "configs")
    demo = tmp_path / "configs" / "ner" / "demo.yaml"
    # few steps, but so that it learns: a model that has not finds spans everywhere, which takes longer than to train it
    learns = {"train_texts": 600, "learning_rate": 0.02, "per_device_train_batch_size": 8}
    config = {**yaml.safe_load(demo.read_text(encoding="utf-8")), **SMALL, **learns}
    demo.write_text(yaml.safe_dump(config), encoding="utf-8")
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    told = 'case $2 in pip | ruff | mypy | pytest) echo "$@"; exit ;; esac'  # and not done
    write_program(programs / "python", f'{told}\nPYTHONPATH={REPOSITORY} exec {sys.executable} "$@"')
    write_program(programs / "paddle-rope", VERBS)
    return tmp_path


@pytest.mark.slow
def test_both_set_up_commands_run(clone):
    _, first, second = blocks("README.md", "bash")[0].splitlines()
    # of Jupyter, in whose cells users train as well
    variables = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    run = {"cwd": clone, "capture_output": True, "text": True, "env": variables}
    done = subprocess.run(shlex.split(first), **run)
    assert done.returncode == 0, done.stderr
    assert "all (micro)" in done.stdout and f'{{"text": "{UNSEEN_SENTENCES[2]}"' in done.stdout
    done = subprocess.run(shlex.split(second), **run)
    *_, style, form, types, tests = done.stdout.splitlines()
    assert (style, form, types) == ("-m ruff check .", "-m ruff format --check .", "-m mypy"), done.stderr
    assert tests.startswith("-m pytest --numprocesses") and tests.endswith(" -m not slow")
    assert "-m pip install" not in done.stdout  # what is installed stays


def test_an_installation_that_fails_is_not_noted_as_done(clone):
    write_program(clone / ".venv" / "bin" / "python", "exit 1")
    assert subprocess.run(["bash", "tools/setup.sh"], cwd=clone).returncode == 1
    assert not (clone / ".venv" / "installed-requirements").exists()


# ---- the tutorial
NOTEBOOK = REPOSITORY / "docs" / "guides" / "tutorial.ipynb"


def run_line(command):
    """What a line of a notebook does that begins with ``!``, in this process."""
    program, *words = shlex.split(command)
    words += ["--format", FORMATS[0]] if words[0] == "export" else []
    assert program == "paddle-rope" and main(words) == 0, command


@pytest.mark.slow
def test_every_cell_runs(tmp_path, monkeypatch):
    write_program(tmp_path / "paddle-rope", VERBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    names = {"run_line": run_line}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 10
    for cell in cells:
        source = "".join(cell["source"]).replace("num_train_epochs: 25", "num_train_epochs: 10")
        exec(re.sub(r"^!(.*)", lambda match: f"run_line({match[1]!r})", source, flags=re.MULTILINE), names)
    assert ("person", "韩美妍") in names["found"]
    assert names["after"]["f1"] > names["before"]["f1"] > 0.5
