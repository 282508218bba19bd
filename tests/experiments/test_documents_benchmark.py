"""The benchmark of many documents: its corpus, and its table."""

import json
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.experiments.benchmarks.documents import measure_ways, write_corpus
from tasks.scaling.worker import Done, part_file

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
    with pytest.raises(InputError, match="--files 101: must be from 1 to --records, 100"):
        write_corpus(tmp_path / "d", [text_file], 100, 101, 1)


def test_table_says_the_speed_of_each_way_and_whether_results_differ(tmp_path, text_file):
    write_corpus(tmp_path / "input", [text_file], 40, 2, 1)
    (tmp_path / "model").mkdir()

    def writing(result):
        def run(job, parts, events):
            events.ready()
            for part in parts:
                part_file(job, part.number).write_text(f"{result}\n" * 10)
                events.done(Done(part.number, 10, 0, 100 + part.number))

        return run

    def job_of(output, processes):
        return SimpleNamespace(
            task="ner", models=[str(tmp_path / "model")], output=output, options={}, text_column="text"
        )

    ways = {"one": (1, writing("x")), "two": (2, writing("x"))}
    table = measure_ways(job_of, ways, tmp_path, 10)
    header, _, first, second = (line.split(" | ") for line in table.splitlines()[:4])
    assert [first[0], first[1], first[5], first[6]] == ["| one", "40", "100", "103"]
    assert header[-1].startswith("processes for 1 million/day at 70% load")
    assert second[0] == "| two" and table.endswith("All results are the same.")
    ways["three"] = (3, writing("y"))
    assert measure_ways(job_of, ways, tmp_path, 10).endswith("The results of three differ from the first.")
