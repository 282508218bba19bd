"""A run over many documents: complete, in order, resumable, whatever dies; by processes and on Ray."""

import datetime
import functools
import importlib.util
import json
import math
import multiprocessing
import os
import shutil
import signal
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.scaling import on_ray, processes
from paddle_rope.tasks.scaling.run import run_documents
from paddle_rope.tasks.scaling.worker import Job, PartWorker
from tests.helpers.models import needs_onnx
from tests.helpers.runs import read_json_lines
from tests.tasks.ner.conftest import error_of
from tests.tasks.scaling.conftest import THRESHOLD, WRITERS, files, write_jsonl

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install 'paddle_rope[ray]'")


@pytest.fixture
def inputs(tmp_path, texts):
    """A folder with files of all kinds: 240 records; and with what is no file of records."""
    folder = tmp_path / "in"
    (folder / "folder.txt").mkdir(parents=True)
    for name in ("_SUCCESS", ".hidden.txt"):
        (folder / name).write_text("x\n")
    for name, write in WRITERS.items():
        write(folder / name, [{"id": f"{name}{number}", "text": text} for number, text in enumerate(texts)])
    return folder


@pytest.fixture
def job(model, tmp_path):
    options = {"device": "cpu", "batch_size": 4}
    return Job("ner", (str(model),), str(tmp_path / "out"), chunk_records=4, options=options)


def here(done, stop_after=None):
    """Do the parts in this process, and note their numbers in ``done``; interrupted after so many parts."""

    def run_parts(job, parts):
        worker = PartWorker(job)
        yield None
        for part in parts:
            if len(done) == stop_after:
                raise KeyboardInterrupt
            done.append(part.number)
            yield worker(part)

    return run_parts


def refusal(job, inputs, part_records=10, run_parts=None):
    return error_of(run_documents, job, list(map(str, inputs)), part_records, run_parts or here([]))


def assert_left_as_by_one_process(job, inputs):
    expected = replace(job, output=f"{job.output}_expected")
    assert run_documents(expected, [str(inputs)], 10, here([])) == 0
    assert files(Path(job.output)) == files(Path(expected.output)) and not [*Path(job.output).glob(".*.tmp")]


def clear_spans(record):
    """Spans whose score is not so near to the threshold that another batch may round it to the other side."""
    spans = record["entities"]
    return [(one["start"], one["end"], one["type"]) for one in spans if one["score"] > THRESHOLD + 1e-3]


@pytest.mark.slow
def test_command_answers_every_record_in_order(inputs, model, texts, tmp_path, capsys):
    with open(inputs / "a.jsonl", "a", encoding="utf-8") as file:
        file.write('{"text": \n\n{"id": 7}\n')
    out = tmp_path / "out"
    words = ["predict", model, "--input", inputs, "--output", out, "--processes", 2, "--part_records", 16]
    words = [*map(str, words), "--device", "cpu"]
    assert main(words) == 0
    found = [record for path in sorted(out.glob("part-*.jsonl")) for record in read_json_lines(path)]
    assert [record["text"] for record in found] == texts * len(WRITERS)
    entities = [clear_spans(record) for record in NerPredictor(model, "cpu")(texts)]
    assert [clear_spans(record) for record in found] == entities * len(WRITERS)
    assert sum(map(len, entities)) > 5
    expected = [number + 1 if ".txt" in name else f"{name}{number}" for name in WRITERS for number in range(len(texts))]
    assert [record.get("id", record.get("line")) for record in found] == expected
    rejected = [(Path(one["place"]).name, one["record"]) for one in read_json_lines(out / "rejected.jsonl")]
    assert rejected == [("a.jsonl:41", '{"text": '), ("a.jsonl:43", '{"id": 7}')]
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert (summary["records"], summary["answered"], summary["rejected"]) == (243, 240, 2)
    before, _ = files(out), capsys.readouterr()
    assert main(words) == 0
    assert "nothing was left to do" in capsys.readouterr().out and files(out) == before


def pid_of_an_actor():
    children = [child.as_dict(["pid", "cmdline"]) for child in psutil.Process().children(recursive=True)]
    return next(child["pid"] for child in children if "ray::_Actor" in " ".join(child["cmdline"] or ()))  # or a zombie


@pytest.mark.slow
@pytest.mark.parametrize("module, name, kind, options, pid_of_a_worker", [
    (processes, "run_in_processes", "exported", [], lambda: multiprocessing.active_children()[0].pid),
    pytest.param(on_ray, "run_on_ray", "model", ["--ray"], pid_of_an_actor, marks=needs_ray),
], ids=["processes", "ray"])  # fmt: skip
def test_a_killed_worker_loses_nothing(inputs, job, request, monkeypatch, module, name, kind, options, pid_of_a_worker):
    killed, run_parts = [], getattr(module, name)

    def run(*given, **more):
        for done in run_parts(*given, **more):
            yield done
            if done and not killed:
                killed.append(pid_of_a_worker())
                os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(module, name, run)
    job = replace(job, models=(str(request.getfixturevalue(kind)),))
    words = ["predict", *job.models, "--input", inputs, "--output", job.output, "--device", "cpu", "--batch_size", 4]
    assert main([*map(str, words), "--part_records", "10", "--processes", "2", *options]) == 0
    assert killed and multiprocessing.active_children() == []
    assert_left_as_by_one_process(job, inputs)


@pytest.mark.slow
def test_a_part_that_kills_every_process_ends_the_run(job, exported, tmp_path, texts):
    records = [{"text": text} for text in texts] * 100
    write_jsonl(tmp_path / "in.jsonl", records)
    ended = threading.Event()

    def kill_writers():
        while not ended.wait(0.01):
            for begun in (tmp_path / "out").glob(".part-*.tmp"):
                for process in multiprocessing.active_children():
                    os.kill(process.pid, signal.SIGKILL)
                begun.unlink(missing_ok=True)

    killing = threading.Thread(target=kill_writers)
    killing.start()
    try:
        run = functools.partial(processes.run_in_processes, count=1)
        message = refusal(replace(job, models=(str(exported),)), [tmp_path / "in.jsonl"], len(records), run)
    finally:
        ended.set()
        killing.join()
    assert f"{tmp_path}/in.jsonl, records 1 to 4000 (signal 9, Killed)" in message
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.json"}
    assert multiprocessing.active_children() == []


def test_interrupted_run_goes_on(inputs, job, tmp_path, capsys):
    first, second = [], []
    assert run_documents(job, [str(inputs)], 10, here(first, stop_after=5)) == 130
    assert "5 of 24 parts" in capsys.readouterr().err
    (tmp_path / "out" / ".part-00007.jsonl.1.tmp").write_text("begun")
    (tmp_path / "out" / "part-00003.jsonl").unlink()
    assert run_documents(job, [str(inputs)], 10, here(second)) == 0
    assert (first, second) == (list(range(5)), [3, *range(5, 24)])
    assert_left_as_by_one_process(job, inputs)


def replace_by_link(path):
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


FORGED = {  # what happens to the file of results, or of rejected records, of part 1
    "results emptied": lambda results, reports, done: results.write_bytes(b""),
    "results forged": lambda results, reports, done: results.write_bytes(results.read_bytes().replace(b"a", b"b")),
    "results behind a link": lambda results, reports, done: replace_by_link(results),
    "rejected records removed": lambda results, reports, done: reports.unlink(),
    "of an earlier version": lambda results, reports, done: done.unlink(),
    "damaged": lambda results, reports, done: done.write_text('{"number": "1"}'),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_part_that_is_not_as_it_was_written_is_computed_again(job, tmp_path, texts, forge):
    write_jsonl(tmp_path / "in.jsonl", [{"text": text, "a": 1} for text in texts[:12]] + [{"a": 2}])
    first, again = [], []
    assert run_documents(job, [str(tmp_path / "in.jsonl")], 10, here(first)) == 0
    before, summary = files(tmp_path / "out"), json.loads((tmp_path / "out" / "summary.json").read_bytes())
    forge(job.part_file(1), job.rejected_file(1), job.done_file(1))
    assert run_documents(job, [str(tmp_path / "in.jsonl")], 10, here(again)) == 0
    assert (first, again) == ([0, 1], [1]) and files(tmp_path / "out") == before
    assert not job.part_file(1).is_symlink() and (summary["answered"], summary["rejected"]) == (12, 1)
    assert json.loads((tmp_path / "out" / "summary.json").read_bytes())["rejected"] == 1


def test_results_and_rejected_records_are_strict_json(job, tmp_path):
    nested = "[" * 100_000 + "]" * 100_000
    records = ('{"text": "a"}', *(f'{{"text": "a", "x": {value}}}' for value in ("1e400", "[NaN]", nested)))
    (tmp_path / "a.jsonl").write_text("\n".join(records))
    columns = {"text": ["a"], "x": [[math.nan, math.inf, 1.5]], "y": [{"z": -math.inf}], "b": [b"x\xff"]}
    columns["day"] = [datetime.date(2026, 11, 30)]
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")
    assert run_documents(job, [str(tmp_path / "a.jsonl"), str(tmp_path / "b.parquet")], 10, here([])) == 0
    for path in (tmp_path / "out").rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)
    (found,) = read_json_lines(job.part_file(1))
    assert (found["x"], found["y"]) == ([None, "inf", 1.5], {"z": "-inf"})
    assert (found["b"], found["day"]) == ("x\\xff", "2026-11-30")
    reasons = [one["reason"] for one in read_json_lines(tmp_path / "out" / "rejected.jsonl")]
    assert len(reasons) == 3 and all("JSON compliant" in one for one in reasons[:2]) and "recursion" in reasons[2]


def test_a_run_goes_on_only_as_it_was_begun(inputs, job, tmp_path):
    shutil.copytree(job.models[0], tmp_path / "model")
    terms = tmp_path / "terms.tsv"
    terms.write_text("a\tb\n")
    job = replace(job, models=(str(tmp_path / "model"),), options={**job.options, "dictionary": str(terms)})
    assert run_documents(job, [str(inputs)], 10, here([], stop_after=1)) == 130
    before = files(tmp_path / "out")
    assert "part_records: 10, not 11" in refusal(job, [inputs], 11)
    assert "max_tokens: None, not 16" in refusal(replace(job, options={**job.options, "max_tokens": 16}), [inputs])
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_text("{")
    assert "manifest.json: is not JSON" in refusal(replace(job, output=str(tmp_path / "damaged")), [inputs])
    assert f"{inputs}/b.jsonl.gz" in refusal(job, [inputs / "a.jsonl"])
    from_stdin = replace(job, options={"dictionary": "-"})  # which processes do not have
    assert "-: no such file" in refusal(from_stdin, [inputs])
    for path in (inputs / "g.txt", inputs / "e.txt", tmp_path / "model" / "config.json", terms):
        content = path.read_bytes() if path.exists() else None
        path.write_bytes((content or b"x") + b"\n")
        assert str(path.parent if path.name == "config.json" else path) in refusal(job, [inputs])
        path.unlink() if content is None else path.write_bytes(content)
    assert files(tmp_path / "out") == before
    done = []
    other_batches = replace(job, options={**job.options, "batch_size": 2})
    assert run_documents(other_batches, [str(inputs)], 10, here(done)) == 0
    assert done == list(range(1, 24))
    assert "part_records: 10, not 11" in refusal(job, [inputs], 11)  # also of a run in which nothing is left to do


@needs_onnx
def test_an_onnx_model_takes_the_threads_that_openmp_takes(exported, monkeypatch):
    for threads in ("2,1", "two", ""):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert NerPredictor(exported)(["好"])[0]["text"] == "好"


def test_two_calls_do_not_work_on_one_run(inputs, job):
    def run(given, parts):
        worker = PartWorker(given)
        yield None
        yield worker(parts[0])
        assert "another process" in refusal(job, [inputs])
        raise KeyboardInterrupt

    assert run_documents(job, [str(inputs)], 10, run) == 130

    def begun_by_another(given, parts):
        run_documents(given, [str(inputs)], 11, here([], stop_after=1))
        yield None

    assert "part_records: 11, not 10" in refusal(replace(job, output=f"{job.output}2"), [inputs], 10, begun_by_another)


def test_run_in_which_everything_is_rejected_fails(job, tmp_path):
    (tmp_path / "in.jsonl").write_text("x\ny\n\n")
    assert refusal(job, [tmp_path / "in.jsonl"]).startswith(f"{tmp_path}/out/rejected.jsonl: ")
    assert [one["record"] for one in read_json_lines(tmp_path / "out" / "rejected.jsonl")] == ["x", "y"]


@needs_ray
@pytest.mark.slow
def test_wrong_models_and_clusters_are_told(inputs, model, tmp_path, refused):
    (tmp_path / "model").mkdir()
    words = ["--input", inputs, "--output", "out", "--device", "cpu", "--ray"]
    assert "model: no model here" in refused("predict", "model", *words)
    assert "--ray 127.0.0.1:1: no cluster" in refused("predict", model, *words, "127.0.0.1:1")
