"""The installed package: the command from any folder, the shipped files, a ``tasks`` of the user's own."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder like the repository: building writes into it."""
    folder = tmp_path_factory.mktemp("sources")
    names = ("paddle_rope", "tasks", "configs", "pyproject.toml", "setup.py", "README.md", "LICENSE")
    for path in map(REPOSITORY.joinpath, names):
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def installed(sources, tmp_path_factory):
    """The folder that ``pip install --target`` fills; the dependencies are those of this interpreter."""
    site = tmp_path_factory.mktemp("installed")
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", site, sources]
    done = subprocess.run([sys.executable, "-m", "pip", "install", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def run(installed, tmp_path):
    """Run in an empty folder with the installed package; what it prints."""

    def run(*words, cwd=tmp_path, **variables):
        environment = {**os.environ, "PYTHONPATH": str(installed), **variables}
        done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_quickstart_takes_a_folder_relative_to_its_caller(tmp_path):
    (tmp_path / "taken").mkdir()
    words = ["bash", REPOSITORY / "tools/quickstart.sh", "taken"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith(f"error: {tmp_path}/taken exists already")


def test_command_and_module_work_outside_the_repository(run, installed):
    shown = run(sys.executable, "-m", "paddle_rope", "--help")
    assert "train a model" in shown
    assert run(sys.executable, installed / "bin" / "paddle-rope") == shown
    assert run(sys.executable, "-m", "paddle_rope", "--version").startswith("paddle-rope ")
    for task, said in (("ner", "2400 sentences"), ("matching", "triples.jsonl: ")):  # their data are there
        assert said in run(sys.executable, "-m", "paddle_rope", "demo", task, f"corpus_{task}")
    code = "import sys; from tasks.ner.page.html import write_html; write_html(sys.stdout, [], [], 'nothing')"
    shown = run(sys.executable, "-c", f"from paddle_rope.__main__ import _load_tasks; _load_tasks(); {code}")
    assert "Entities of nothing" in shown and "box-decoration-break" in shown


def test_shipped_configurations_are_found_from_any_folder_unless_there_are_ones_of_the_user(run, tmp_path):
    code = (
        "from paddle_rope.__main__ import main, _load_tasks; _load_tasks(); "
        "from tasks.common.run_config import read_run_config; import json; "
        "print(json.dumps(read_run_config('configs/classification/demo.yaml', ['--dev_file', 'configs/none.jsonl'])))"
    )
    config = json.loads(run(sys.executable, "-c", code))
    data = Path(config["train_file"])
    assert data.is_absolute() and data.read_bytes() == (REPOSITORY / "configs/classification/demo.jsonl").read_bytes()
    assert config["dev_file"] == "configs/none.jsonl"
    (tmp_path / "configs/classification").mkdir(parents=True)
    (tmp_path / "configs/classification/demo.yaml").write_text(
        "seed: 7\ntrain_file: configs/classification/demo.yaml\n"
    )
    config = json.loads(run(sys.executable, "-c", code))
    assert config == {"seed": 7, "train_file": "configs/classification/demo.yaml", "dev_file": "configs/none.jsonl"}


def test_every_shipped_file_is_installed(installed):
    shipped = [path.relative_to(REPOSITORY / "configs") for path in (REPOSITORY / "configs").rglob("*.*")]
    assert len(shipped) > 20
    assert [path for path in shipped if not (installed / "tasks/configs" / path).is_file()] == []
    of_library = (*REPOSITORY.glob("paddle_rope/roformer/encoders/*/*"), *REPOSITORY.glob("paddle_rope/native/csrc/*"))
    assert len(of_library) > 10
    data = [path.relative_to(REPOSITORY) for path in (*(REPOSITORY / "tasks").rglob("*.yaml"), *of_library)]
    assert [path for path in data if not (installed / path).is_file()] == []


@pytest.mark.parametrize("file", ["tasks.py", "tasks/__init__.py"])
def test_tasks_of_the_user_do_no_harm(run, installed, tmp_path, file):
    foreign = tmp_path / "foreign"
    (foreign / file).parent.mkdir(parents=True)
    (foreign / file).write_text("raise SystemExit('foreign')\n")
    first = os.pathsep.join([str(foreign), str(installed)])
    for words in (["-m", "paddle_rope"], [installed / "bin/paddle-rope"]):
        words = [sys.executable, *words, "convert", "--help"]
        assert "formats:" in run(*words, cwd=foreign) and "formats:" in run(*words, PYTHONPATH=first)


@pytest.mark.slow
def test_editable_installation_runs_the_code_of_the_repository(sources, tmp_path):
    venv.create(tmp_path / "venv")
    python, site = tmp_path / "venv/bin/python", sysconfig.get_path("purelib")
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-e", sources]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *words]
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), site])  # what builds, and the dependencies
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(pip, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    environment["PYTHONPATH"] = site
    code = "import paddle_rope.__main__ as m; m._load_tasks(); from tasks.common import run_config as s\n"
    code += "print(s.shipped('configs/ner/demo.yaml'))"
    for words in ([tmp_path / "venv/bin/paddle-rope", "convert", "--help"], [python, "-c", code]):
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()) == REPOSITORY / "configs/ner/demo.yaml"
