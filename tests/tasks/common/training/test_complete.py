"""Which checkpoint is taken: the newest whole one, by its content."""

import json
import os

import pytest

from tasks.common.errors import InputError
from tasks.common.training.checkpoints import TRAINER_STATE_FILE, read_trainer_state
from tasks.common.training.complete import (
    COMPLETE_FILE,
    has_checkpoint,
    last_checkpoint,
    mark_complete,
    remove_older,
)


def make(folder, step, best=None, **state):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "weights").write_bytes(bytes(range(200)))
    best = None if best is None else str(folder / f"checkpoint-{best}")
    values = {"global_step": step, "log_history": [{"loss": 0.5, "step": 1}], "best_model_checkpoint": best, **state}
    (path / TRAINER_STATE_FILE).write_text(json.dumps(values), encoding="utf-8")
    mark_complete(path)
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_newest_checkpoint_is_that_of_most_steps(tmp_path):
    for step in (100, 1000, 99):
        make(tmp_path, step)
    assert last_checkpoint(tmp_path).name == "checkpoint-1000"
    with pytest.raises(InputError, match="no checkpoint was written"):
        last_checkpoint(tmp_path / "missing")


def test_mark_comes_after_the_files_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    path = make(tmp_path, 1)
    files = [str(path / name) for name in sorted([TRAINER_STATE_FILE, "weights"])]
    mark = str(path / f".{COMPLETE_FILE}.{os.getpid()}.tmp")  # before it gets its name
    assert synced == [*files, str(path), mark, str(path), str(tmp_path)]


def cut(path):
    os.truncate(path / "weights", 100)


def change(path):
    content = bytearray((path / "weights").read_bytes())
    content[50] ^= 1
    (path / "weights").write_bytes(content)


def remove(path):
    (path / "weights").unlink()


def empty_mark(path):  # what a power cut leaves where files are not synced
    (path / COMPLETE_FILE).write_bytes(b"")


def state_of_another_step(path):
    (path / TRAINER_STATE_FILE).write_text('{"global_step": 7}', encoding="utf-8")
    mark_complete(path)


def nonsense(path):
    (path / TRAINER_STATE_FILE).write_text('{"global_step": "30", "max": NaN', encoding="utf-8")
    mark_complete(path)


@pytest.mark.parametrize("damage", [cut, change, remove, empty_mark, state_of_another_step, nonsense])
def test_damaged_checkpoint_is_passed_over_with_a_line(tmp_path, capsys, damage):
    paths = [make(tmp_path, step) for step in (10, 20, 30)]
    damage(paths[-1])
    assert last_checkpoint(tmp_path) == paths[1]
    out = capsys.readouterr().out
    assert out.startswith(f"{paths[2]}: is damaged (") and out.endswith(f"; {paths[1]} is the newest whole one\n")
    assert out.count("\n") == 1
    for path in paths[:2]:
        damage(path)
    with pytest.raises(InputError, match="checkpoint-30: is damaged .* no whole checkpoint before it; train anew"):
        last_checkpoint(tmp_path)


def test_checkpoint_whose_best_is_damaged_is_passed_over(tmp_path, capsys):
    first, best = make(tmp_path, 10), make(tmp_path, 20)
    make(tmp_path, 30, best=20)
    change(best)
    assert last_checkpoint(tmp_path) == first
    assert "checkpoint-20, the best so far, is damaged" in capsys.readouterr().out


def test_checkpoint_that_was_cut_while_it_was_written_is_none(tmp_path, capsys):
    first = make(tmp_path, 10)
    (make(tmp_path, 20) / COMPLETE_FILE).unlink()
    assert last_checkpoint(tmp_path) == first
    assert capsys.readouterr().out == ""


def test_the_best_and_the_one_before_stay(tmp_path):
    for step in (10, 20, 30, 50):
        make(tmp_path, step)
    (make(tmp_path, 35) / COMPLETE_FILE).unlink()
    newest = make(tmp_path, 40)
    remove_older(newest, str(tmp_path / "elsewhere" / "checkpoint-10"), before=1)
    assert names(tmp_path) == ["checkpoint-10", "checkpoint-30", "checkpoint-40"]
    remove_older(newest, None, before=0)
    assert names(tmp_path) == ["checkpoint-40"]


def test_checkpoints_in_a_folder_within_are_seen(tmp_path):
    (tmp_path / "before").mkdir()
    assert not has_checkpoint(tmp_path)
    make(tmp_path / "before", 1)
    assert has_checkpoint(tmp_path) and not has_checkpoint(tmp_path, within=False)


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "null", '{"global_step": "3"}', '{"global_step": true}', '{"global_step": 3, "log_history": {}}',
        '{"global_step": 3, "log_history": [3]}', '{"global_step": 3, "log_history": [{"loss": "x"}]}',
        '{"global_step": 3, "best_metric": "x"}', '{"global_step": 3, "best_model_checkpoint": 3}',
        '{"global_step": 3, "unknown": 3}', "[" * 100_000,
    ],
)  # fmt: skip
def test_damaged_trainer_state_is_named(tmp_path, content):
    (tmp_path / TRAINER_STATE_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=TRAINER_STATE_FILE):
        read_trainer_state(tmp_path)
