"""Where Paddle is not installed: what works, and the line that names what to install."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.exports import FORMATS, export
from tests.helpers.verbs import verb
from tests.tasks.commands.conftest import LABELED

REPOSITORY = Path(__file__).resolve().parents[3]
# Without what only Paddle's recipes need: the base installation has none of it.
WITHOUT_PADDLE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("paddle", "paddlenlp", "scipy", "matplotlib", "visualdl"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from tasks.commands.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def call(folder, *words):
    """The command line without paddle, in a process of its own."""
    (folder / "without_paddle.py").write_text(WITHOUT_PADDLE, encoding="utf-8")
    command = [sys.executable, str(folder / "without_paddle.py"), *map(str, words)]
    environment = {"PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["train", "resume", "predict", "predict many", "tune", "export"])
def test_what_needs_paddle_says_what_to_install(folders, labeled, tmp_path, command):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("recipe: ner\ntrain_file: x", encoding="utf-8")
    config = f"recipe: ner\ntrain_file: {labeled['ner']}\noutput_dir: new"
    (tmp_path / "train.yaml").write_text(config, encoding="utf-8")
    predict = ["predict", folders["ner"], "--input", labeled["ner"], "--output", "found"]
    words = {
        "train": ["train", "train.yaml"],
        "resume": ["train", "--resume", "run"],
        "predict": predict,
        "predict many": [*predict, "--processes", "1"],
        "tune": ["tune", folders["ner"], labeled["ner"]],
        "export": ["export", folders["ner"], "--output", "exported"],
    }
    done = call(tmp_path, *words[command])
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: paddle is not installed") and len(done.stderr.splitlines()) == 1
    assert "pip install" in done.stderr


def test_data_are_inspected(labeled, tmp_path):
    done = call(tmp_path, "inspect", labeled["ner"], "--output", "found.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["splits"]["train"]["texts"] == 1


@pytest.mark.slow
@pytest.mark.skipif("onnx" not in FORMATS, reason="paddle2onnx wants Paddle 3")
@pytest.mark.parametrize("recipe", LABELED)
def test_an_onnx_model_is_evaluated_as_with_paddle(folders, labeled, tmp_path, recipe, capsys):
    folder = export(tmp_path / "exported", "onnx", folders[recipe])
    capsys.readouterr()
    words = ["evaluate", folder, labeled[recipe], "--output"]
    done = call(tmp_path, *words, tmp_path / "without.json")
    assert done.returncode == 0, done.stderr
    assert verb().main([*map(str, words), str(tmp_path / "with.json")]) == 0
    found, expected = ((tmp_path / name).read_text(encoding="utf-8") for name in ("without.json", "with.json"))
    assert found == expected
    assert done.stdout == capsys.readouterr().out


def test_the_graph_of_paddle_needs_paddle(folders, labeled, tmp_path):
    folder = export(tmp_path / "exported", "paddle", folders["classification"])
    done = call(tmp_path, "evaluate", folder, labeled["classification"])
    assert done.returncode == 2 and "pip install" in done.stderr and len(done.stderr.splitlines()) == 1
