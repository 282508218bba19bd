"""paddle-rope benchmark native."""

import json

import pytest

from paddle_rope.native.library import library
from tasks.commands.benchmark import benchmark
from tasks.common.errors import InputError


@pytest.mark.parametrize("size", ["4x256", "1x64,2x0", "1x65,2x3", "1x64,2x3,4"])
def test_sizes_that_cannot_be_read_are_named(size):
    with pytest.raises(InputError, match=f"--sizes {size}: give layers x hidden size"):
        benchmark(["native", "--sizes", size])


def test_table_and_file_have_a_row_for_each_size_and_attention(tmp_path, capsys):
    words = ["--sizes", "1x64,2x3", "--attention", "softmax", "linear-decay", "--rounds", "1"]
    if library() is None:
        with pytest.raises(InputError, match="native operators"):
            benchmark(["native", *words])
        return
    assert benchmark(["native", *words, "--output", str(tmp_path / "native.json")]) == 0
    rows = json.loads((tmp_path / "native.json").read_text())["rows"]
    assert [(row["size"], row["variant"]) for row in rows] == [("1x64,2x3", "softmax"), ("1x64,2x3", "linear-decay")]
    assert all(row[job]["ratio"] > 0 for row in rows for job in ("train", "predict"))
    printed = capsys.readouterr().out
    assert printed.count("| 1x64,2x3 |") == 2
