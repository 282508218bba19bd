"""Files appear complete or not at all; folders of runs are never overwritten; tables and the epochs of a run."""

import csv
import io
import json
import os

import numpy as np
import pytest
from PIL import Image

from paddle_rope import RoFormerConfig, RoFormerForMaskedLM
from paddle_rope.files import replace_file
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import (
    atomic_folder,
    atomic_writer,
    check_new_folder,
    check_output_file,
    json_line,
    write_json,
)
from paddle_rope.tasks.common.reports import figures
from paddle_rope.tasks.common.reports.figures import draw_epochs
from paddle_rope.tasks.common.reports.tables import as_csv, as_markdown


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


def test_two_writers_of_a_file_do_not_meet_and_no_link_is_followed(tmp_path, monkeypatch):
    with atomic_writer(tmp_path / "file") as one, atomic_writer(tmp_path / "file") as other:
        one.write("one")
        other.write("other")
    assert (tmp_path / "file").read_text() == "one"  # the last to end
    monkeypatch.setattr("secrets.token_hex", lambda size: "foreseen")
    (tmp_path / ".file.foreseen.tmp").symlink_to("victim")
    for write, error in ((write_json, InputError), (replace_file, FileExistsError)):
        with pytest.raises(error, match="File exists"):
            write(tmp_path / "file", b"")
    assert not (tmp_path / "victim").exists() and (tmp_path / "file").read_text() == "one"


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing_and_keeps_the_old_file(tmp_path, failure):
    (tmp_path / "old").write_text("old")
    for writer, name in ((atomic_writer, "new"), (atomic_folder, "new"), (atomic_writer, "old")):
        with pytest.raises(failure), writer(tmp_path / name):
            raise failure
    with pytest.raises(TypeError):
        write_json(tmp_path / "old", [{"a": 1}, {"b": object()}])
    assert names(tmp_path) == ["old"] and (tmp_path / "old").read_text() == "old"


def test_a_folder_is_made_where_a_link_leads_and_not_in_place_of_the_current_one(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    with atomic_folder(tmp_path / "link") as folder:
        (folder / "file").touch()
    assert names(tmp_path) == ["empty", "link"] and names(tmp_path / "empty") == ["file"]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="here: is a mount point or the current folder"), atomic_folder("."):
        pass


def test_json_is_readable_and_utf8(tmp_path):
    write_json(tmp_path / "a.json", {"名": [1, 0.5]})
    content = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(content) == {"名": [1, 0.5]} and "名" in content
    assert json_line({"a": "好\n\ud800\u2028"}) == '{"a": "好\\n\\ud800\u2028"}\n'


FILE, WRITE, RUN = check_output_file, lambda path: atomic_writer(path).__enter__(), check_new_folder


@pytest.mark.parametrize("check, path, message", [
    *((check, "no/file", "cannot be written") for check in (FILE, WRITE)),
    *((check, ".", "is a folder") for check in (FILE, WRITE)),
    *((check, "file/x", "writable") for check in (FILE, WRITE)),
    *((check, "pipe", "is a device or pipe; give the name of a file") for check in (FILE, WRITE)),
    # of a run also tests/tasks/test_recipes.py
    (RUN, "link", "is a file; give another --output_dir"),
    (RUN, "x" * 300, "xxx: cannot be made .*give another --output_dir"),
])  # fmt: skip
def test_a_place_that_is_taken_or_cannot_be_written_is_an_error(tmp_path, path, message, check):
    (tmp_path / "file").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match=message):
        check(tmp_path / path)
    assert names(tmp_path) == ["file", "link", "pipe"] and (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("write", [RoFormerForMaskedLM.save_pretrained, write_huggingface])
def test_the_umask_decides_who_may_read_a_model(write, tmp_path):
    before = os.umask(0o027)
    try:
        write(RoFormerForMaskedLM(RoFormerConfig(8, 8, 1, 1, 8)), tmp_path / "model")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "model.safetensors"} <= modes.keys() and set(modes.values()) == {0o640}


# ---- tables, and the epochs of a run
HISTORY = [
    {"loss": 2.0, "learning_rate": 0.1, "progress_or_epoch": 0.5, "step": 5},
    {"loss": 1.0, "learning_rate": 0.1, "progress_or_epoch": 1.0, "step": 10},
    {"eval_f1": 0.25, "eval_f1_by_type/a": 0.5, "progress_or_epoch": 1.0, "step": 10},
    {"eval_f1": 0.123456, "progress_or_epoch": 2.0, "step": 20},
    {"train_loss": 1.5, "progress_or_epoch": 2.0, "step": 20},
]


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_reads_back_and_markdown_keeps_bars_inside_cells():
    rows = [{"name": "a|b, c", "value": 1.5, "other": 3}, {"name": "d", "value": 2}]
    written = [{"name": "a|b, c", "value": "1.5", "other": "3"}, {"name": "d", "value": "2", "other": ""}]
    assert read(as_csv(rows)) == written
    assert as_markdown(rows, ["name", "value"]) == "| name | value |\n| --- | ---: |\n| a\\|b, c | 1.5 |\n| d | 2 |\n"


def test_epochs_have_their_mean_loss_and_the_scores_that_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_epochs", draw_epochs)  # in place of an empty file
    figures.write_epochs(tmp_path, HISTORY, ("f1", "recall"))
    assert read((tmp_path / "epochs.csv").read_text(encoding="utf-8")) == [
        {"epoch": "1", "step": "10", "training loss": "1.5", "dev f1": "0.25"},
        {"epoch": "2", "step": "20", "training loss": "", "dev f1": "0.123456"},
    ]
    assert np.asarray(Image.open(tmp_path / "epochs.png").convert("L")).std() > 1
    figures.write_epochs(tmp_path, HISTORY[:2], ("f1",))  # without dev
    assert (tmp_path / "epochs.csv").read_text(encoding="utf-8") == "epoch,step,training loss\n1,10,1.5\n"
