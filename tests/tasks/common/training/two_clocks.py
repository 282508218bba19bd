"""Run in two processes by test_agreement.py: when each of them saves and ends, as lines of JSON in a file of its own.

The clock of the second process is four times as fast, and it alone gets a signal, in step 45.
"""

import json
import sys
import zlib  # noqa: F401  before paddle 2.6.2, as in tests/conftest.py
from pathlib import Path
from types import SimpleNamespace

import paddle.distributed as dist

from tasks.common.training import callbacks

LAST = 60

if __name__ == "__main__":
    dist.init_parallel_env()
    rank = dist.get_rank()
    state = SimpleNamespace(global_step=0, max_steps=1000)
    ended = []
    callbacks.time = SimpleNamespace(monotonic=lambda: state.global_step * (1, 4)[rank])
    callbacks.is_requested = lambda: rank == 1 and state.global_step >= 45
    callbacks.end = lambda: ended.append(state.global_step)
    checkpoints = callbacks.CheckpointTimer(seconds=60)
    args = SimpleNamespace(world_size=2, gradient_accumulation_steps=1)
    checkpoints.on_train_begin(args, state, None)
    saved = []
    while state.global_step < LAST and not ended:
        state.global_step += 1
        control = SimpleNamespace(should_save=False)
        checkpoints.on_step_end(args, state, control, train_dataloader=range(1000))
        if control.should_save:
            saved.append(state.global_step)
            checkpoints.on_save(args, state, control)
    Path(sys.argv[1], f"{rank}.json").write_text(json.dumps({"saved": saved, "ended": ended}), encoding="utf-8")
