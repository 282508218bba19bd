"""Two processes that train together save and end at the same steps, whatever their clocks say.

As a program it is one of the processes. The clock of the second is four times as fast, and it alone gets a signal, in
step 45.
"""

import json
import sys
import zlib  # noqa: F401  before paddle 2.6.2, as in tests/conftest.py
from pathlib import Path
from types import SimpleNamespace

import paddle.distributed as dist
import pytest

from tasks.common.training import callbacks
from tests.conftest import REPOSITORY
from tests.helpers.two_processes import launch

LAST = 60


@pytest.mark.slow
def test_a_checkpoint_is_due_for_all_processes_when_it_is_for_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    launch(tmp_path, Path(__file__), tmp_path)
    # after 60 s of the faster clock, 15 steps, at the next step that is asked; the signal of step 45 likewise
    expected = {"saved": [20, 40, 50], "ended": [50]}
    assert [json.loads((tmp_path / f"{rank}.json").read_text("utf-8")) for rank in (0, 1)] == [expected] * 2


if __name__ == "__main__":
    dist.init_parallel_env()
    rank = dist.get_rank()
    state = SimpleNamespace(global_step=0, max_steps=1000)
    saved, ended = [], []
    callbacks.time = SimpleNamespace(monotonic=lambda: state.global_step * (1, 4)[rank])
    callbacks.is_requested = lambda: rank == 1 and state.global_step >= 45
    callbacks.end = lambda: ended.append(state.global_step)
    timer = callbacks.CheckpointTimer(seconds=60)
    args = SimpleNamespace(world_size=2, gradient_accumulation_steps=1)
    timer.on_train_begin(args, state, None)
    while state.global_step < LAST and not ended:
        state.global_step += 1
        control = SimpleNamespace(should_save=False)
        timer.on_step_end(args, state, control, train_dataloader=range(1000))
        if control.should_save:
            saved.append(state.global_step)
            timer.on_save(args, state, control)
    Path(sys.argv[1], f"{rank}.json").write_text(json.dumps({"saved": saved, "ended": ended}), encoding="utf-8")
