"""tools/check_environment.py with versions that are not installed, and tools/check_gpu.py on the CPU."""

import json
import os

import check_environment
import check_gpu
import pytest
from check_environment import problems, try_paddle

WORKING = {
    **dict.fromkeys(("paddlefsl", "pooch", "seqeval", "sentencepiece", "colorlog"), "1.9.0"), "paddlepaddle": "3.3.1",
    "paddlenlp": "2.8.1", "visualdl": "2.5.3", "jieba": "0.42.1", "PyYAML": "6.0.3", "tqdm": "4.70.1", "rich": "15.0.0",
    "safetensors": "0.8.0", "matplotlib": "3.11.2", "scipy": "1.17.1", "huggingface_hub": "0.36.2",
    "aistudio-sdk": "0.2.6", "datasets": "3.6.0", "protobuf": "4.25.9", "numpy": "2.4.6", "scikit-learn": "1.9.1",
    "pandas": "3.1.1", "pyarrow": "25.0.1", "jinja2": "3.1.6", "pebble": "5.2.0", "setuptools": "81.0", "dill": "0.3.4",
    "multiprocess": "0.70.12.2", "regex": "2026.1", "pyahocorasick": "2.3.1", "zhplot": "1.0.0",
}  # fmt: skip
OLD = {
    "paddlepaddle": "2.6.2", "numpy": "1.26.4", "pyarrow": "18.1.0", "scipy": "1.13.1", "scikit-learn": "1.5.2",
    "pandas": "2.3.3",
}  # fmt: skip
GPU = {**OLD, "paddlepaddle": None, "paddlepaddle-gpu": "2.6.2"}


def found(versions, environment=None):
    """Problems with ``WORKING`` but for ``versions``."""
    return problems({**WORKING, **versions}.get, environment or {})


@pytest.mark.parametrize("versions", [{}, OLD, GPU], ids=["3.3.1", "2.6.2", "gpu"])
def test_stacks_of_the_constraints_work(versions):
    assert found(versions, environment={"OMP_NUM_THREADS": "2"}) == []


@pytest.mark.parametrize("versions, what, remedy", [
    ({**OLD, "numpy": "2.0.0"}, "numpy 2.0.0", "numpy<2"),
    ({**OLD, "pyarrow": "19.0.0"}, "pyarrow 19.0.0", "pyarrow<19"),
    ({"protobuf": "5.29.0"}, "protobuf 5.29.0", "protobuf<5"), ({"datasets": "4.0.0"}, "datasets 4.0.0", "datasets<4"),
    ({"paddlepaddle": "2.5.0"}, "paddlepaddle 2.5.0", "paddlepaddle<=3.3.1,>=2.6.2"),
    ({"jieba": None}, "jieba is not installed", "jieba==0.42.1"),
    ({"paddlepaddle": None}, "paddlepaddle is not installed", "tools/test.sh"),
    ({**OLD, "paddlepaddle-gpu": "2.6.2"}, "both installed", "uninstall -y paddlepaddle"),
])  # fmt: skip
def test_a_version_that_does_not_work_is_named_with_its_remedy(versions, what, remedy):
    ((shown, command),) = found(versions)
    assert what in shown and remedy in command


def test_threads_that_are_no_number_are_named():
    for threads in ("", "0", "two", "-1", "4,2"):
        ((shown, remedy),) = found({}, environment={"OMP_NUM_THREADS": threads})
        assert repr(threads) in shown and "OMP_NUM_THREADS=1" in remedy


def test_paddle_that_does_not_start_and_the_native_operators_are_named(tmp_path):
    python = tmp_path / "python"
    for script, what in (("echo 'ImportError: no multiarray' >&2; exit 1", "multiarray"), ("kill -11 $$", "signal 11")):
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        answer, (shown, remedy) = try_paddle(str(python))
        assert answer is None and what in shown and "tools/test.sh" in remedy
    answer, problem = try_paddle(environment={**os.environ, "PADDLE_ROPE_NATIVE": "0", "OMP_NUM_THREADS": "1"})
    assert problem is None and answer[:2] == ("cpu", "1") and "PADDLE_ROPE_NATIVE=0" in answer[2]


@pytest.mark.parametrize("answer, status, error", [
    ((("cpu", "2", "native operators: none"), None), 0, ""),
    ((None, ("no paddle", "take one")), 2, "error: no paddle\n  remedy: take one\n"),
])  # fmt: skip
def test_status_and_output(monkeypatch, capsys, answer, status, error):
    monkeypatch.setattr(check_environment, "version_of", {**WORKING, **OLD}.get)
    monkeypatch.setattr(check_environment, "try_paddle", lambda: answer)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert check_environment.main() == status
    printed = capsys.readouterr()
    assert "numpy 1.26.4" in printed.out and "import zlib" in printed.out and printed.err == error
    assert ("device cpu, threads 2" in printed.out) == (status == 0)


# ---- the GPU
def test_every_layer_is_right_and_the_file_holds_all_figures(tmp_path, capsys):
    file = tmp_path / "check.json"
    assert check_gpu.main(["--device", "cpu", "--output", str(file)]) == 0
    assert "every layer is within its bound" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["device"] == "cpu"
    layers = {row["layer"]: row for row in found["layers"]}
    assert {*check_gpu.attention_cases(), "loss of spans"} < set(layers)
    assert all(row["passes"] and row["output"] < 1e-5 and row.get("gradient", 0) < 1e-5 for row in layers.values())


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_wrong_layer_is_named(factor, monkeypatch):
    cases = check_gpu.attention_cases() | {"RoPE": lambda q, k, v: q * (factor if "float32" in str(q.dtype) else 1)}
    monkeypatch.setattr(check_gpu, "attention_cases", lambda: cases)
    passes = {row["layer"]: row["passes"] for row in check_gpu.check_layers(["float32"])}
    assert not passes["RoPE"] and passes["RMS norm"]


def test_a_device_that_is_not_there_is_refused(capsys):
    assert check_gpu.main(["--device", "abacus"]) == 2
    assert capsys.readouterr().err.startswith("error: --device abacus")
