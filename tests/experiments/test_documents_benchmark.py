"""The benchmark of many documents: its corpus, and its table."""

import json
import sys

import pytest

from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks import documents
from tasks.experiments.benchmarks.documents import measure_ways, write_corpus

TEXTS = "今天天气很好。我们去北京！\n短。\n没有句号的一行\n"


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS, encoding="utf-8")
    return path


def records(folder):
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text("utf-8").splitlines()]


def test_corpus_is_drawn_from_the_sentences_with_a_seed(tmp_path, text_file):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_corpus(tmp_path / name, [text_file], 100, 3, seed) == 3
    found = records(tmp_path / "a")
    assert [record["id"] for record in found] == list(range(100))
    assert {record["text"] for record in found} == {"今天天气很好。", "我们去北京！", "没有句号的一行"}
    assert [path.name for path in sorted((tmp_path / "a").iterdir())] == [f"sentences-00{n}.jsonl" for n in range(3)]
    assert records(tmp_path / "b") == found != records(tmp_path / "c")
    text_file.write_text("短。", encoding="utf-8")
    with pytest.raises(InputError, match="no sentence of 4 characters"):
        write_corpus(tmp_path / "d", [text_file], 100, 3, 1)


def test_table_says_the_speed_of_each_way_and_whether_results_differ(tmp_path, text_file, monkeypatch):
    results = {"processes_1": "x", "processes_2": "x", "ray_2": "y"}
    commands = []

    def predict(argv, corpus, folder, count, on_ray):
        commands.append([*argv, corpus.name, folder.name, count, *on_ray])
        folder.mkdir()
        (folder / "part-0.jsonl").write_text(results[folder.name])
        call = {"answered": 40, "seconds": 1, "documents_per_second": 40, "megabytes_first": 100, "megabytes_last": 103}
        (folder / "summary.json").write_text(json.dumps({"last_call": call}))

    monkeypatch.setattr(documents, "_predict", predict)
    table = measure_ways(["model"], [1, 2], [2], tmp_path)
    assert commands[0] == ["model", "input", "processes_1", 1] and commands[2][-1] == "--ray"
    header, _, first, second = (line.split(" | ") for line in table.splitlines()[:4])
    assert [first[0], first[1], first[5], first[6]] == ["| processes_1", "40", "100", "103"]
    assert header[-1].startswith("processes for 1 million/day at 70% load")
    assert table.endswith("The results of ray_2 differ from the first.")


def test_the_command_draws_the_corpus_and_predicts_it(tmp_path, text_file, monkeypatch, capsys):
    stub = (
        "import json, pathlib, sys; folder = pathlib.Path(sys.argv[sys.argv.index('--output') + 1]); folder.mkdir(); "
    )
    call = {"answered": 4, "seconds": 1, "documents_per_second": 4, "megabytes_first": 1, "megabytes_last": 1}
    stub += f"(folder / 'summary.json').write_text(json.dumps({{'last_call': {call}}})); sys.exit('fails' in sys.argv)"
    monkeypatch.setattr(documents, "PREDICT", (sys.executable, "-c", stub))
    argv = ["model", "--texts", str(text_file), "--records", "4", "--files", "2"]
    assert main(["benchmark", "documents", *argv, "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "4 sentences of 3 different ones" in printed and "All results are the same." in printed
    with pytest.raises(SystemExit, match="1"):
        main(["benchmark", "documents", "fails", *argv, "--output", str(tmp_path / "other")])
    assert main(["benchmark", "documents", *argv, "--output", str(tmp_path / "out"), "--processes"]) == 2
