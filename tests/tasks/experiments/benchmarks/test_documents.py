"""The benchmark of many documents, with a command that only pretends to predict."""

import sys

import pytest

from tasks.commands.main import main
from tasks.experiments.benchmarks import documents

PREDICT = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
folder.mkdir(parents=True)
(folder / "part-0.jsonl").write_text("other" if "--ray" in sys.argv else "same")
call = {"answered": 40, "seconds": 1, "documents_per_second": 40, "megabytes_first": 100, "megabytes_last": 103}
(folder / "summary.json").write_text(json.dumps({"last_call": call}))
sys.exit("fails" in sys.argv)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "PREDICT", (sys.executable, "-c", PREDICT))
    return lambda *words: main(["benchmark", "documents", *words, "--input", "x", "--output", str(tmp_path / "out")])


def test_each_way_has_a_row_and_other_results_are_named(run, capsys):
    assert run("model", "--processes", "1", "2", "--ray", "2") == 0
    printed = capsys.readouterr().out
    rows = [line.split(" | ") for line in printed.splitlines()[2:5]]
    assert [row[0] for row in rows] == ["| processes_1", "| processes_2", "| ray_2"]
    assert {(row[1], row[5], row[6]) for row in rows} == {("40", "100", "103")}
    assert "results of ray_2 differ" in printed


def test_a_failure_of_the_command_ends_the_benchmark(run):
    with pytest.raises(SystemExit, match="1"):
        run("fails")
    assert run("model", "--processes") == 2
