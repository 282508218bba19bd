"""tools/check_gpu.py, here on the CPU."""

import json

import check_gpu
import pytest


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
