"""Where Paddle is not installed: what works, and the line that names what to install."""

import json
import subprocess
import sys

import pytest

from tasks.commands.main import main
from tests.conftest import REPOSITORY
from tests.helpers.models import FORMATS, export
from tests.tasks.commands.conftest import LABELED

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


@pytest.mark.parametrize("words", [
    "train train.yaml", "train --resume run", "predict MODEL --input DATA --output found", "tune MODEL DATA",
    "predict MODEL --input DATA --output found --processes 1", "export MODEL --output exported",
])  # fmt: skip
def test_what_needs_paddle_says_what_to_install(folders, labeled, write, tmp_path, words):
    for file in ("train.yaml", "run/config.yaml"):
        write(f"recipe: ner\ntrain_file: {labeled['ner']}\noutput_dir: new", file)
    names = {"MODEL": folders["ner"], "DATA": labeled["ner"]}
    done = call(tmp_path, *(names.get(word, word) for word in words.split()))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: paddle is not installed") and done.stderr.count("\n") == 1
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
    assert main([*map(str, words), str(tmp_path / "with.json")]) == 0
    found, expected = ((tmp_path / name).read_text(encoding="utf-8") for name in ("without.json", "with.json"))
    assert found == expected
    assert done.stdout == capsys.readouterr().out


def test_the_graph_of_paddle_needs_paddle(folders, labeled, tmp_path):
    folder = export(tmp_path / "exported", "paddle", folders["classification"])
    done = call(tmp_path, "evaluate", folder, labeled["classification"])
    assert done.returncode == 2 and "pip install" in done.stderr and len(done.stderr.splitlines()) == 1
