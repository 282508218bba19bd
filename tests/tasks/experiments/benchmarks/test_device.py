"""The check of a device, on the CPU."""

import json

import check_gpu
import pytest

from paddle_rope import reference
from tasks.experiments.benchmarks import device


def test_every_layer_is_right_and_the_file_holds_all_figures(tmp_path, capsys):
    file = tmp_path / "check.json"
    assert check_gpu.main(["--device", "cpu", "--quick", "--output", str(file)]) == 0
    assert "every layer is within its bound" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["device"] == "cpu"
    layers = {row["layer"]: row for row in found["layers"]}
    assert {*device.attention_cases(), "loss of spans"} < set(layers)
    assert all(row["passes"] and row["output"] < 1e-5 and row.get("gradient", 0) < 1e-5 for row in layers.values())
    assert [row["job"] for row in found["encoders"]] == ["train", "predict"]
    assert all(row["seconds"] > 0 and row["tokens_a_second"] > 0 for row in found["encoders"])
    assert [row["tokens"] for row in found["linear_attention"]] == [4096, 16384]


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_wrong_layer_is_named(factor, monkeypatch):
    monkeypatch.setattr(reference, "rotate", lambda x, *_: x * factor)
    passes = {row["layer"]: row["passes"] for row in device.check_layers(["float32"])}
    assert not passes["RoPE"] and passes["RMS norm"]


def test_a_length_without_memory_ends_the_lengths(monkeypatch):
    def with_little_memory(q, k, v, rope):
        if q.shape[1] > 8:
            raise MemoryError("no\nmemory")
        return q * k * v

    monkeypatch.setattr(device, "linear_attention", with_little_memory)
    first, last = device.measure_linear_attention([8, 16, 32], "float32", 0.0)
    assert first["seconds"] > 0 and (last["tokens"], last["error"]) == (16, "no memory")
