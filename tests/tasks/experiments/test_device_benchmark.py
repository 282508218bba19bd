"""The check of a device, on the CPU: every layer is right there, what is wrong is named, and the file holds it all."""

import json

import check_gpu
import paddle
import pytest

from paddle_rope import reference
from tasks.experiments.benchmarks import device, device_layers
from tasks.experiments.benchmarks.device import Size


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """One small encoder, and short texts."""
    monkeypatch.setattr(device, "SMALL_SIZES", device.SMALL_SIZES[:1])
    monkeypatch.setattr(device, "SHORTEST", 64)


def test_every_layer_is_right_and_the_file_holds_what_is_printed(tmp_path, capsys):
    file = tmp_path / "check.json"
    assert check_gpu.main(["--device", "cpu", "--quick", "--output", str(file)]) == 0
    printed, found = capsys.readouterr().out, json.loads(file.read_text(encoding="utf-8"))
    assert printed.endswith("every layer is within its bound\n")
    assert found["machine"]["device"] == "cpu" and found["machine"]["paddlenlp"] in printed
    layers = {row["layer"]: row for row in found["layers"]}
    assert {*device_layers.attention_cases(), "loss of spans", "RoFormer of 4 layers, autocast"} == set(layers)
    assert all(row["passes"] and row["output"] < 1e-5 and (row["gradient"] or 0) < 1e-5 for row in layers.values())
    assert [row["job"] for row in found["encoders"]] == ["training", "inference"]
    assert all(row["seconds"] > 0 and row["tokens_a_second"] > 0 for row in found["encoders"])
    assert [row["tokens"] for row in found["linear_attention"]] == [64, 256]


@pytest.mark.parametrize("wrong", [lambda x, *_: x * 1.01, lambda x, *_: x / 0.0], ids=["off by a hundredth", "nan"])
def test_a_layer_that_is_wrong_is_named(wrong, monkeypatch, capsys):
    cases = device_layers.attention_cases()
    monkeypatch.setattr(device_layers, "attention_cases", lambda: {"RoPE": cases["RoPE"]})
    monkeypatch.setattr(reference, "rotate", wrong)
    assert check_gpu.main(["--device", "cpu", "--quick"]) == 1
    assert "beyond their bounds: RoPE in float32" in capsys.readouterr().out


def test_a_length_without_memory_ends_the_row_of_lengths(monkeypatch):
    def attention(q, k, v, rotary):
        if q.shape[1] > 8:
            raise MemoryError("no\nroom")
        return q

    monkeypatch.setattr(device, "linear_attention", attention)
    monkeypatch.setattr(paddle, "grad", lambda *_: None)
    rows = device.measure_linear_attention([8, 16, 32], "float32", 0.0)
    assert [row["tokens"] for row in rows] == [8, 16]
    assert "seconds" in rows[0] and rows[1]["error"] == "no room"


def test_work_of_a_forward_pass():
    """2 FLOPs for each of 12 width^2 weights a layer and token, and 4 length width for scores and values."""
    assert Size(2, 8, 3, 5).flops() == 3 * 5 * (2 * 2 * 12 * 64 + 2 * 4 * 5 * 8)
