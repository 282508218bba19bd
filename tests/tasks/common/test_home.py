"""A home folder that is missing or cannot be written: paddle and PaddleNLP make folders in it when imported."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tasks.common.home import ensure_home

REPOSITORY = Path(__file__).resolve().parents[3]
IMPORTED = "import os, tasks; print(os.environ['HOME'])"


def run(home, *words, **variables):
    """What a process prints whose ``HOME`` is ``home``."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "HOME": str(home), "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, *map(str, words)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["file", "below a file", "cache is a file", "broken link", "relative", "no folder is writable"])
def useless(request, tmp_path, monkeypatch):
    """A home folder in which nothing can be made, also not by root, whom permissions do not stop."""
    file = tmp_path / "file"
    file.write_text("")
    home = tmp_path / "home"
    if request.param == "cache is a file":
        home.mkdir()
        (home / ".cache").write_text("")
    elif request.param == "broken link":
        home.symlink_to(tmp_path / "nowhere")
    elif request.param == "no folder is writable":
        home.mkdir()
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    return {"file": file, "below a file": file / "home" / "user", "relative": "home"}.get(request.param, home)


def test_a_useless_home_is_replaced_until_the_end_of_the_process(useless, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(useless))
    at_end = []
    monkeypatch.setattr("atexit.register", lambda *call: at_end.append(call))
    ensure_home()
    home = Path(os.environ["HOME"])
    assert home.parent == tmp_path and home.stat().st_mode & 0o777 == 0o700 and list(home.iterdir()) == []
    (home / ".paddlenlp").mkdir()
    ((remove, folder, process),) = at_end
    remove(folder, process + 1)
    assert home.is_dir()
    remove(folder, process)
    assert not home.exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_home_that_can_be_used_stays_and_nothing_is_made_in_it(exists, monkeypatch, tmp_path):
    home = tmp_path / "home"
    if exists:
        (home / ".cache").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("HOME", str(home))
    ensure_home()
    assert os.environ["HOME"] == str(home) and sorted(tmp_path.rglob("*")) == before


def test_the_library_sees_to_it_and_removes_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(tmp_path, "-c", IMPORTED) == f"{tmp_path}\n"
    temporary = Path(run(tmp_path / "file", "-c", IMPORTED, TMPDIR=str(tmp_path)).strip())
    assert temporary.parent == tmp_path and not temporary.exists()
    of_library = IMPORTED.replace("tasks", "paddle_rope")
    assert run(tmp_path / "file", "-c", of_library) == f"{tmp_path / 'file'}\n"


def test_a_useless_home_of_paddlenlp_is_replaced_too(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("atexit.register", lambda *call: None)
    (tmp_path / "file").write_text("")
    (tmp_path / "held" / "models").mkdir(parents=True)
    home = os.environ.get("HOME")
    for given, stays in ((tmp_path / "file", False), (tmp_path / "made", True), (tmp_path / "held", True)):
        monkeypatch.setenv("PPNLP_HOME", str(given))
        ensure_home()
        assert (os.environ["PPNLP_HOME"] == str(given)) == stays and os.environ.get("HOME") == home
    monkeypatch.setenv("PPNLP_HOME", str(tmp_path / "file"))
    assert run(tmp_path, "-c", "import tasks.recipes, paddlenlp; print(1)", TMPDIR=str(tmp_path)).endswith("1\n")


def test_no_place_for_a_folder_changes_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    ensure_home()
    assert os.environ["HOME"] == str(tmp_path / "file")


@pytest.mark.slow
def test_recipes_dashboard_and_static_graphs_work_without_a_home(tmp_path):
    """All that the verbs import, and the one call of paddle that makes a folder in it later, in an export."""
    (tmp_path / "file").write_text("")
    (tmp_path / "program.py").write_text(
        "from tasks.recipes import RECIPES, get_recipe\n"
        "for name in RECIPES: get_recipe(name)\n"
        "import paddle, visualdl\n"
        "spec = paddle.static.InputSpec([2])\n"
        "@paddle.jit.to_static(input_spec=[spec], full_graph=True)\n"
        "def graph(x):\n"
        "    return x + 1 if x.sum() > 0 else x\n"
        "print(graph(paddle.ones([2])).tolist())\n"
    )
    printed = run(tmp_path / "file" / "home", tmp_path / "program.py", TMPDIR=str(tmp_path))
    assert printed.splitlines()[-1] == "[2.0, 2.0]"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "program.py"]
