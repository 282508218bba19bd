"""A run over many documents: complete, in order, resumable, whatever dies."""

import functools
import json
import multiprocessing
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from tasks.commands.main import main
from tasks.common.errors import InputError
from tasks.ner import NerPredictor
from tasks.scaling.processes import run_in_processes
from tasks.scaling.run import run_documents
from tasks.scaling.worker import Job, PartWorker
from tests.helpers.verbs import verb
from tests.tasks.scaling.conftest import WRITERS, write_jsonl


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def results(folder):
    return [record for path in sorted(Path(folder).glob("part-*.jsonl")) for record in lines(path)]


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.jsonl")}


@pytest.fixture
def inputs(tmp_path, texts):
    """A folder with files of all kinds, and what is in it: 240 records."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, write in WRITERS.items():
        write(folder / name, [{"id": f"{name}{number}", "text": text} for number, text in enumerate(texts)])
    return folder


def job(model, output):
    return Job("ner", (str(model),), str(output), chunk_records=4, options={"device": "cpu", "batch_size": 4})


class InThisProcess:
    """What does the parts, without other processes. ``stop_after`` so many parts it is interrupted."""

    def __init__(self, stop_after=None):
        self.done, self.stop_after = [], stop_after

    def __call__(self, job, parts, events):
        worker = PartWorker(job)
        events.ready()
        for part in parts:
            if len(self.done) == self.stop_after:
                raise KeyboardInterrupt
            self.done.append(part.number)
            events.done(worker(part))


@pytest.fixture
def fails_once():
    """The message with which a run ends."""

    def fails_once(job, inputs, part_records, run):
        with pytest.raises(InputError) as caught:
            run_documents(job, list(map(str, inputs)), part_records, run)
        return str(caught.value)

    return fails_once


def clear_spans(record):
    """Those whose score is not so near to the threshold 0 that another batch may round it to the other side."""
    return [(one["start"], one["end"], one["type"]) for one in record["entities"] if one["score"] > 1e-3]


def test_command_answers_every_record_in_order(inputs, model, texts, tmp_path, capsys):
    with open(inputs / "a.jsonl", "a", encoding="utf-8") as file:
        file.write('{"text": \n\n{"id": 7}\n')
    words = ["predict", model, "--input", inputs, "--output", tmp_path / "out", "--processes", 2]
    words = [*map(str, words), "--part_records", "16", "--device", "cpu"]
    assert main(words) == 0
    assert "240 documents in 18 parts, 2 rejected (see " in capsys.readouterr().out
    found = results(tmp_path / "out")
    assert [record["text"] for record in found] == texts * len(WRITERS)
    entities = [clear_spans(record) for record in NerPredictor(model, "cpu")(texts)]
    assert [clear_spans(record) for record in found] == entities * len(WRITERS)
    assert sum(map(len, entities)) > 5
    keys = [record.get("id", record.get("line")) for record in found]
    expected = {name: [f"{name}{number}" for number in range(len(texts))] for name in WRITERS}
    expected |= {name: list(range(1, len(texts) + 1)) for name in WRITERS if ".txt" in name}
    assert keys == [key for name in WRITERS for key in expected[name]]
    rejected = lines(tmp_path / "out" / "rejected.jsonl")
    assert [(Path(one["place"]).name, one["record"]) for one in rejected] == [
        ("a.jsonl:41", '{"text": '),
        ("a.jsonl:43", '{"id": 7}'),
    ]
    parts = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["parts"]
    assert [(part["file"], Path(part["path"]).name, part["first"], part["last"]) for part in parts[:4]] == [
        ("part-00000.jsonl", "a.jsonl", 1, 16),
        ("part-00001.jsonl", "a.jsonl", 17, 32),
        ("part-00002.jsonl", "a.jsonl", 33, 43),
        ("part-00003.jsonl", "b.jsonl.gz", 1, 16),
    ]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["records"], summary["answered"], summary["rejected"]) == (243, 240, 2)
    before = files(tmp_path / "out")
    assert main(words) == 0
    assert "nothing was left to do" in capsys.readouterr().out
    assert files(tmp_path / "out") == before


def test_a_killed_process_loses_nothing(inputs, exported, tmp_path):
    killed = []

    def run(job, parts, events):
        done = events.done

        def kill_another(one):
            done(one)
            if not killed:
                killed.append(multiprocessing.active_children()[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        events.done = kill_another
        run_in_processes(job, parts, events, 2)

    assert run_documents(job(exported, tmp_path / "out"), [str(inputs)], 10, run) == 0
    assert killed
    run_documents(job(exported, tmp_path / "expected"), [str(inputs)], 10, InThisProcess())
    assert files(tmp_path / "out") == files(tmp_path / "expected")
    assert multiprocessing.active_children() == []


def test_what_kills_every_process_ends_the_run(exported, tmp_path, texts, fails_once):
    records = [{"text": text} for text in texts] * 100
    write_jsonl(tmp_path / "in.jsonl", records)
    ended = threading.Event()

    def kill_who_writes():
        while not ended.wait(0.01):
            for begun in (tmp_path / "out").glob(".part-*.tmp"):
                for process in multiprocessing.active_children():
                    os.kill(process.pid, signal.SIGKILL)
                begun.unlink(missing_ok=True)

    killing = threading.Thread(target=kill_who_writes)
    killing.start()
    try:
        run = functools.partial(run_in_processes, count=1)
        message = fails_once(job(exported, tmp_path / "out"), [tmp_path / "in.jsonl"], len(records), run)
    finally:
        ended.set()
        killing.join()
    assert message.startswith(f"3 processes have died in {tmp_path}/in.jsonl, records 1 to 4000 (signal 9, Killed); ")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.json"}
    assert multiprocessing.active_children() == []


def test_interrupted_run_goes_on(inputs, model, tmp_path, capsys):
    first, second = InThisProcess(stop_after=5), InThisProcess()
    assert run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, first) == 130
    assert capsys.readouterr().err == "stopped: 5 of 24 parts are finished; run the same command again to go on\n"
    (tmp_path / "out" / ".part-00007.jsonl.1.tmp").write_text("begun")
    assert run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, second) == 0
    assert (first.done, second.done) == (list(range(5)), list(range(5, 24)))
    run_documents(job(model, tmp_path / "expected"), [str(inputs)], 10, InThisProcess())
    assert files(tmp_path / "out") == files(tmp_path / "expected")
    assert not list((tmp_path / "out").glob(".*.tmp"))


@pytest.mark.parametrize("kept", [0, 1, -1, -30], ids=["empty", "a byte", "without its last byte", "cut in a line"])
def test_parts_that_are_not_whole_are_computed_again(inputs, model, tmp_path, capsys, kept):
    with open(inputs / "a.jsonl", "a", encoding="utf-8") as file:
        file.write('\n{"id": 7}\n')  # a blank line and a record that is rejected, both in the fifth part
    run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, InThisProcess())
    before = files(tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    cut = ["part-00000.jsonl", "part-00007.jsonl", ".rejected/part-00004.jsonl"]
    for name in cut:
        path = tmp_path / "out" / name
        path.write_bytes(path.read_bytes()[:kept])
    (tmp_path / "out" / "summary.json").unlink()
    again = InThisProcess()
    assert run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, again) == 0
    assert again.done == [0, 4, 7]
    assert "computing 3 of 25 parts again" in capsys.readouterr().err
    assert files(tmp_path / "out") == before
    (tmp_path / "out" / "summary.json").unlink()
    run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, again)
    assert again.done == [0, 4, 7]
    del summary["last_call"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8")) == summary


def test_a_run_goes_on_only_as_it_was_begun(inputs, model, tmp_path, fails_once):
    shutil.copytree(model, tmp_path / "model")
    begun = job(tmp_path / "model", tmp_path / "out")
    run_documents(begun, [str(inputs)], 10, InThisProcess(stop_after=1))
    before = files(tmp_path / "out")
    run = InThisProcess()

    def refused(inputs, part_records=10, **changes):
        changed = Job(**{**vars(begun), **changes})
        return fails_once(changed, inputs, part_records, run).removeprefix(f"{tmp_path}/out: ")

    remedy = ", so it cannot go on; give the run what it began with, or another folder as --output"
    assert refused([inputs], 11) == "was begun with --part_records 10, not 11" + remedy
    options = {**begun.options, "max_tokens": 16}
    assert refused([inputs], options=options) == "was begun with --max_tokens None, not 16" + remedy
    assert refused([inputs / "a.jsonl"]).startswith(f"was begun with {inputs}/b.jsonl.gz too, so it cannot go on")
    (inputs / "g.txt").write_text("x\n")
    assert refused([inputs]).startswith(f"was begun without {inputs}/g.txt, so")
    (inputs / "g.txt").unlink()
    (inputs / "e.txt").write_bytes((inputs / "e.txt").read_bytes().replace("，".encode(), "。".encode()))
    assert refused([inputs]).startswith(f"{inputs}/e.txt has changed since it was begun, so")
    WRITERS["e.txt"](inputs / "e.txt", [{"text": record["text"]} for record in lines(inputs / "a.jsonl")])
    config = (tmp_path / "model" / "config.json").read_bytes()
    (tmp_path / "model" / "config.json").write_bytes(config + b"\n")
    assert refused([inputs]).startswith(f"{tmp_path}/model has changed since it was begun, so")
    (tmp_path / "model" / "config.json").write_bytes(config)
    assert files(tmp_path / "out") == before and run.done == []
    options = {**begun.options, "batch_size": 2}
    assert run_documents(Job(**{**vars(begun), "options": options}), [str(inputs)], 10, run) == 0
    assert run.done == list(range(1, 24))


def test_two_calls_do_not_work_on_one_run(inputs, model, tmp_path, fails_once):
    def run(given, parts, events):
        events.ready()
        again = fails_once(job(model, tmp_path / "out"), [inputs], 10, InThisProcess())
        assert again == f"{tmp_path}/out: another process works on this run; wait for its end"
        raise KeyboardInterrupt

    assert run_documents(job(model, tmp_path / "out"), [str(inputs)], 10, run) == 130


def test_run_in_which_everything_is_rejected_fails(model, tmp_path, fails_once):
    (tmp_path / "in.jsonl").write_text("x\ny\n\n")
    message = fails_once(job(model, tmp_path / "out"), [tmp_path / "in.jsonl"], 10, InThisProcess())
    assert message.startswith(f"{tmp_path}/out/rejected.jsonl: every record was rejected")
    assert [one["record"] for one in lines(tmp_path / "out" / "rejected.jsonl")] == ["x", "y"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--processes", "2"], "--input: many documents are read from files"),
        (["--input", "-", "in.jsonl"], "--input: many documents are read from files"),
        (["--input", "in.jsonl", "--processes", "2"], "many documents are written to a folder; give --output FOLDER"),
        (["--input", "in.jsonl", "--text_column", "body"], "many documents are written to a folder; give --output"),
        (["--input", "in.jsonl", "--output", "out", "--processes", "0"], "--processes 0: must be 1 or more"),
        (["--input", "in.jsonl", "--output", "out", "--processes", "1", "--threads", "0"], "--threads 0: must be 1"),
        (["--input", "data", "--output", "out", "--part_records", "0"], "--part_records 0: must be 1 or more"),
        (["--input", "data", "--output", "data"], "data: holds the input; give another folder"),
        (["--input", "data/in.csv", "--processes", "1", "--output", "data"], "data: holds the input; give another"),
        (["--input", "data", "--output", "full"], "full: is not empty; give another folder as --output"),
        (["--input", "data", "--output", "in.jsonl"], "in.jsonl: is a file; give another --output"),
        (["--input", "data", "--output", "out", "--format", "bio"], "--format bio: many documents are written as JSON"),
        (["--input", "data", "--output", "out", "--html", "x.html"], "--html: is for one file of texts"),
        (["--input", "data", "--output", "out", "--text_column", "body"], "data/in.csv:1: no column 'body'"),
        (["--input", "nope", "--output", "out", "--processes", "1"], "nope: no such file"),
    ],
)
def test_wrong_calls_are_told_and_write_nothing(model, tmp_path, fails, words, message):
    for name in ("data", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "in.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "data" / "in.csv").write_text("text\nx\n")
    (tmp_path / "full" / "x").write_text("x")
    found = fails(verb("predict", str(model)), *words)
    assert message in found


def test_a_wrong_model_is_told_before_anything_is_written(tmp_path, fails):
    (tmp_path / "in.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "model").mkdir()
    words = ["--input", "in.jsonl", "--output", "out", "--processes", "1"]
    assert fails(verb("predict", "nope"), *words).startswith("nope: no such folder")
    assert "no model here" in fails(verb("predict", "model"), *words)
