"""Progress of training: a bar on a terminal, elsewhere a line once a minute."""

from __future__ import annotations

import datetime
import sys
import time
from typing import TextIO

from paddlenlp.trainer import TrainerCallback
from tqdm import tqdm

SECONDS_A_LINE = 60.0
SHOWN_AFTER = 1.0  # seconds; shorter training needs no bar


class TrainingProgress(TrainerCallback):
    """Shows phase, steps, loss and remaining time.

    Args:
        phase: name of the phase, such as the recipe's.
        seconds: between two lines if there is no terminal.
        stream: None for standard error.
    """

    def __init__(self, phase: str, seconds: float = SECONDS_A_LINE, stream: TextIO | None = None):
        self.phase = phase
        self.seconds = seconds
        self.stream = stream
        self.bar = None
        self._loss = None

    def on_train_begin(self, args, state, control, **kwargs):
        if not state.is_local_process_zero:
            return
        stream = self.stream or sys.stderr
        self._started, self._first = time.monotonic(), state.global_step
        self._told = self._started
        if stream.isatty():
            self.bar = tqdm(
                total=state.max_steps, initial=state.global_step, desc=self.phase, unit="step", file=stream,
                dynamic_ncols=True, delay=SHOWN_AFTER,
            )  # fmt: skip

    def on_log(self, args, state, control, logs=None, **kwargs):
        self._loss = (logs or {}).get("loss", self._loss)
        if self.bar is not None and self._loss is not None:
            self.bar.set_postfix_str(f"loss {self._loss:.4g}", refresh=False)

    def on_step_end(self, args, state, control, **kwargs):
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)
            return
        now = time.monotonic()
        if state.is_local_process_zero and now - self._told >= self.seconds and state.global_step < state.max_steps:
            self._told = now
            done, left = state.global_step - self._first, state.max_steps - state.global_step
            print(self._line(state, (now - self._started) / done * left), file=self.stream or sys.stderr, flush=True)

    def on_train_end(self, args, state, control, **kwargs):
        self.close()

    def close(self) -> None:
        """End the line of the bar, so that the next output begins a new one."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def _line(self, state, seconds):
        left = datetime.timedelta(seconds=round(seconds))
        loss = "" if self._loss is None else f"loss {self._loss:.4g}, "
        return f"{self.phase}: step {state.global_step:,} of {state.max_steps:,}, {loss}{left} left"
