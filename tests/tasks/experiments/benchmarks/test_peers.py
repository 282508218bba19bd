"""The sides of ``benchmark peers``: their turns, their numbers, the table."""

import json
import os
from types import SimpleNamespace

import pytest

from paddle_rope.native.library import library
from paddle_rope.native.products import why_no_bfloat16
from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.peers import measure_in_turns

# Python of an environment of the dependency group peers
PEER_PYTHON = os.environ.get("PEER_PYTHON")
ENCODER = {"do": "encoder", "folder": "x"}


@pytest.mark.parametrize("name, good, bad", [("huggingface", 1.00001, 1.01), ("huggingface_bfloat16", 1.01, 1.2)])
def test_a_side_with_other_numbers_is_refused(name, good, bad):
    def measure(output):
        sides = {"plain": 1.0, name: output}
        workers = {side: SimpleNamespace(ask=lambda one=one, **_: {"output": [one]}) for side, one in sides.items()}
        measure_in_turns(workers, ENCODER, rounds=0)

    measure(good)
    for output in (bad, float("nan")):
        with pytest.raises(InputError, match="encoder differs"):
            measure(output)


@pytest.mark.slow
def test_all_sides_compute_the_same_and_are_in_the_file(tmp_path, capsys):
    """With Hugging Face only where PEER_PYTHON names a Python with PyTorch."""
    file = tmp_path / "peers.json"
    argv = ["--sizes", "1x64,2x3", "--linear", "5", "--rounds", "1", "--output", str(file)]
    assert main(["benchmark", "peers", *argv, *(["--peer_python", PEER_PYTHON] if PEER_PYTHON else [])]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["job"] for row in rows] == ["train", "predict", "attend"]
    linear = {"plain", *(["native"] if library() else []), *(["huggingface"] if PEER_PYTHON else [])}
    others = {"paddlenlp", "paddlenlp_as_installed", *(["huggingface_bfloat16"] if PEER_PYTHON else [])}
    others |= {"native_bfloat16"} if why_no_bfloat16() is None else set()
    assert [set(row["turns"]) for row in rows] == [linear | others, linear | others, linear]
    assert PEER_PYTHON or "Hugging Face is left out" in capsys.readouterr().out
