"""Files appear complete or not at all; folders of runs are never overwritten."""

import json
import os

import pytest

from tasks.common.errors import InputError
from tasks.common.files import (
    atomic_folder,
    atomic_writer,
    check_output_dir,
    check_output_file,
    write_json,
    write_json_lines,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_only_when_all_of_it_is_written_and_on_the_disk(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (calls.append(os.fstat(handle).st_size), fsync(handle)))
    monkeypatch.setattr("os.replace", lambda *names: (calls.append("replace"), replace(*names)))
    path = tmp_path / "file"
    for content in ("中\n", "new"):  # the second replaces the first
        before = path.read_bytes() if path.exists() else None
        with atomic_writer(str(path)) as file:
            file.write(content)
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == content.encode() and names(tmp_path) == ["file"]
    assert calls == [len("中\n".encode()), "replace", len("new"), "replace"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("writer", [atomic_writer, atomic_folder])
def test_failure_leaves_nothing_and_keeps_the_old_file(tmp_path, failure, writer):
    with pytest.raises(failure), writer(tmp_path / "new"):
        raise failure
    assert names(tmp_path) == []
    (tmp_path / "old").write_text("old")
    with pytest.raises(failure), atomic_writer(tmp_path / "old") as file:
        file.write("new")
        raise failure
    with pytest.raises(TypeError):
        write_json_lines(tmp_path / "old", [{"a": 1}, {"b": object()}])
    assert names(tmp_path) == ["old"] and (tmp_path / "old").read_text() == "old"


def test_json_is_readable_and_utf8(tmp_path):
    write_json(tmp_path / "a.json", {"名": [1, 0.5]})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"名": [1, 0.5]}
    assert "名" in (tmp_path / "a.json").read_text(encoding="utf-8")
    write_json_lines(tmp_path / "a.jsonl", iter([{"a": "\n\u2028"}, {"b": 2}]))
    lines = (tmp_path / "a.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"a": "\n\u2028"}, {"b": 2}] and lines[-1] == b""


@pytest.mark.parametrize(
    "path, message",
    [
        ("no/file", "cannot be written"), (".", "is a folder"), ("file/x", "writable"),
        ("pipe", "is a device or pipe; give the name of a file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "check", [check_output_file, lambda path: atomic_writer(path).__enter__()], ids=["check", "write"]
)
def test_place_that_cannot_be_written_is_an_error(tmp_path, path, message, check):
    (tmp_path / "file").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=message):
        check(tmp_path / path)
    assert names(tmp_path) == ["file", "pipe"] and (tmp_path / "pipe").is_fifo()


def test_checks_make_nothing(tmp_path):
    check_output_file(tmp_path / "new")
    check_output_dir(tmp_path / "a" / "b")
    check_output_dir(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "path, message",
    [
        (".", "is not empty; give another --output_dir"), ("file", "is a file; give another --output_dir"),
        ("file/run", "cannot be made .*file is not a writable folder"), ("/proc/run", "/proc/run: cannot be made"),
    ],
)  # fmt: skip
def test_folder_that_is_taken_or_cannot_be_made_is_an_error(tmp_path, path, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=message):
        check_output_dir(tmp_path / path)
