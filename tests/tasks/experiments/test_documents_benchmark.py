"""The benchmark of many documents: its table."""

import json
import sys

import pytest

from tasks.commands.main import main
from tasks.experiments.benchmarks import documents
from tasks.experiments.benchmarks.documents import measure_ways


def test_table_says_the_speed_of_each_way_and_whether_results_differ(tmp_path, monkeypatch):
    results = {"processes_1": "x", "processes_2": "x", "ray_2": "y"}
    commands = []

    def predict(argv, folder, count, on_ray):
        commands.append([*argv, folder.name, count, *on_ray])
        folder.mkdir()
        (folder / "part-0.jsonl").write_text(results[folder.name])
        call = {"answered": 40, "seconds": 1, "documents_per_second": 40, "megabytes_first": 100, "megabytes_last": 103}
        (folder / "summary.json").write_text(json.dumps({"last_call": call}))

    monkeypatch.setattr(documents, "_predict", predict)
    table = measure_ways(["model"], [1, 2], [2], tmp_path)
    assert commands[0] == ["model", "processes_1", 1] and commands[2][-1] == "--ray"
    header, _, first, second = (line.split(" | ") for line in table.splitlines()[:4])
    assert [first[0], first[1], first[5], first[6]] == ["| processes_1", "40", "100", "103"]
    assert header[-1].startswith("processes for 1 million/day at 70% load")
    assert table.endswith("The results of ray_2 differ from the first.")


def test_the_command_predicts_the_documents(tmp_path, monkeypatch, capsys):
    call = {"answered": 4, "seconds": 1, "documents_per_second": 4, "megabytes_first": 1, "megabytes_last": 1}
    lines = [
        "import json, pathlib, sys",
        "folder = pathlib.Path(sys.argv[sys.argv.index('--output') + 1])",
        "folder.mkdir(parents=True)",
        f"(folder / 'summary.json').write_text(json.dumps({{'last_call': {call}}}))",
        "sys.exit('fails' in sys.argv)",
    ]
    stub = "\n".join(lines)
    monkeypatch.setattr(documents, "PREDICT", (sys.executable, "-c", stub))
    argv = ["model", "--input", "texts"]
    assert main(["benchmark", "documents", *argv, "--output", str(tmp_path / "out")]) == 0
    assert "All results are the same." in capsys.readouterr().out
    with pytest.raises(SystemExit, match="1"):
        main(["benchmark", "documents", "fails", *argv, "--output", str(tmp_path / "other")])
    assert main(["benchmark", "documents", *argv, "--output", str(tmp_path / "out"), "--processes"]) == 2
