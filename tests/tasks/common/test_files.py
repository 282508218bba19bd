"""Files appear complete or not at all; folders of runs are never overwritten."""

import json
import os

import pytest

from tasks.common.errors import InputError
from tasks.common.files import (
    atomic_writer,
    check_output_dir,
    check_output_file,
    claim_output_dir,
    write_json,
    write_json_lines,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_only_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "file"
    with atomic_writer(path) as file:
        file.write("中\n")
        assert not path.exists()
    assert path.read_bytes() == "中\n".encode()
    assert names(tmp_path) == ["file"]


def test_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    calls, fsync = [], os.fsync
    monkeypatch.setattr("os.fsync", lambda handle: (calls.append(os.fstat(handle).st_size), fsync(handle)))
    replace = os.replace
    monkeypatch.setattr("os.replace", lambda *names: (calls.append("replace"), replace(*names)))
    with atomic_writer(tmp_path / "file") as file:
        file.write("content")
    assert calls == [len("content"), "replace"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing_and_keeps_the_old_file(tmp_path, failure):
    for before in ([], ["old"]):
        with pytest.raises(failure), atomic_writer(tmp_path / "old") as file:
            file.write("new")
            raise failure
        assert names(tmp_path) == before
        (tmp_path / "old").write_text("old")
    assert (tmp_path / "old").read_text() == "old"


def test_old_file_is_replaced(tmp_path):
    (tmp_path / "file").write_text("a long old content")
    with atomic_writer(str(tmp_path / "file")) as file:
        file.write("new")
    assert (tmp_path / "file").read_text() == "new"


def test_json_is_readable_and_utf8(tmp_path):
    write_json(tmp_path / "a.json", {"名": [1, 0.5]})
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"名": [1, 0.5]}
    assert "名" in (tmp_path / "a.json").read_text(encoding="utf-8")
    write_json_lines(tmp_path / "a.jsonl", iter([{"a": "\n\u2028"}, {"b": 2}]))
    lines = (tmp_path / "a.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == [{"a": "\n\u2028"}, {"b": 2}] and lines[-1] == b""


def test_device_or_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: is a device or pipe; give the name of a file"):
        write_json(tmp_path / "pipe", {})
    assert (tmp_path / "pipe").is_fifo() and names(tmp_path) == ["pipe"]


def test_record_that_fails_leaves_no_part_of_the_file(tmp_path):
    with pytest.raises(TypeError):
        write_json_lines(tmp_path / "a.jsonl", [{"a": 1}, {"b": object()}])
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "path, message", [("no/file", "cannot be written"), (".", "is a folder"), ("file/x", "writable")]
)
@pytest.mark.parametrize("check", [check_output_file, lambda path: atomic_writer(path).__enter__()])
def test_place_that_cannot_be_written_is_an_error(tmp_path, path, message, check):
    (tmp_path / "file").write_text("old")
    with pytest.raises(InputError, match=message):
        check(tmp_path / path)
    assert names(tmp_path) == ["file"]


def test_checks_make_nothing(tmp_path):
    check_output_file(tmp_path / "new")
    check_output_dir(tmp_path / "a" / "b")
    assert names(tmp_path) == []


def test_folder_of_a_run_is_made_with_its_parents_and_an_empty_one_is_taken(tmp_path):
    path = tmp_path / "a" / "b"
    assert claim_output_dir(str(path)) == path
    assert claim_output_dir(path) == path and path.is_dir()


def test_folder_that_holds_something_is_an_error(tmp_path):
    (tmp_path / ".hidden").write_text("")
    for function in (check_output_dir, claim_output_dir):
        with pytest.raises(InputError, match="is not empty; give another --output_dir or remove"):
            function(tmp_path)


def test_file_in_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; give another --output_dir"):
        check_output_dir(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be made .*file is not a writable folder"):
        check_output_dir(tmp_path / "file" / "run")


def test_folder_that_the_system_refuses_is_an_error():
    with pytest.raises(InputError, match="/proc/run: cannot be made"):
        claim_output_dir("/proc/run")
