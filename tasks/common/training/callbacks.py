"""Callbacks between the steps of a training run: seeds, timed checkpoints, averaged weights, progress on a terminal or
in a log file."""

import contextlib
import io
import sys
import time

import numpy as np
import paddle
import paddle.distributed as dist
from paddlenlp.trainer import TrainerCallback
from tqdm import tqdm

from paddle_rope.tasks.common.training.checkpoints import read_checkpoint_tensors, write_tensors
from paddle_rope.tasks.common.training.interruption import end, is_requested

ASKED_EVERY = 10  # steps; several processes ask each other whether a checkpoint is due
# Steps between two updates of the average, with the decay to this power: cheaper, but skips the weights in between.
UPDATE_EVERY = 5
SECONDS_A_LINE = 60.0
LINE = "{desc}: step {n:,} of {total:,}{postfix}, {remaining} left"
SHOWN_AFTER = 1.0  # seconds; shorter training needs no bar


class ClearedGradients(TrainerCallback):
    """Drops the gradients of batches that did not fill up ``gradient_accumulation_steps`` at the end of an epoch."""

    def on_epoch_begin(self, args, state, control, optimizer=None, **kwargs):
        optimizer.clear_grad()


class SeededSteps(TrainerCallback):
    """Seeds Paddle's random numbers at each step, by the seed of the run, the step and the process. So a resumed run
    draws what an uninterrupted one draws, and checkpoints hold no state of generators."""

    def on_step_begin(self, args, state, control, **kwargs):
        numbers = np.random.SeedSequence([args.seed, state.global_step, args.process_index])
        paddle.seed(int(numbers.generate_state(1)[0]))


class CheckpointTimer(TrainerCallback):
    """Requests a checkpoint ``seconds`` after the last one, and at the end; after a signal it then ends the run.

    After the last step of an epoch it waits for the end of the epoch. A run could not be resumed from in between,
    because the step alone does not tell whether the leftover batches and the evaluation are done.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self._saved, self._saved_step = 0.0, None
        self._ends = False  # whether the run ends after the next checkpoint

    def on_train_begin(self, args, state, control, **kwargs):
        self._saved = time.monotonic()

    def on_step_end(self, args, state, control, train_dataloader=None, **kwargs):
        if args.world_size > 1 and state.global_step % ASKED_EVERY:
            return
        is_due = self._is_due(args)
        steps = max(1, len(train_dataloader) // args.gradient_accumulation_steps)
        if is_due and state.global_step % steps and state.global_step < state.max_steps:
            control.should_save = True

    def on_epoch_end(self, args, state, control, **kwargs):
        is_due = self._is_due(args)
        if state.global_step != self._saved_step and (is_due or state.global_step >= state.max_steps):
            control.should_save = True

    def on_save(self, args, state, control, **kwargs):
        self._saved, self._saved_step = time.monotonic(), state.global_step
        if args.world_size > 1:
            dist.barrier()  # until the first process has marked it
        if self._ends or (args.world_size == 1 and is_requested()):
            end()

    def _is_due(self, args):
        """Whether a checkpoint is due: the same answer in all processes."""
        is_due, self._ends = 0 < self.seconds <= time.monotonic() - self._saved, is_requested()
        if args.world_size > 1:
            asked = paddle.to_tensor([int(is_due), int(self._ends)], dtype="int64")
            dist.all_reduce(asked, op=dist.ReduceOp.MAX)
            is_due, self._ends = map(bool, asked.tolist())
        return is_due or self._ends


class EvaluatedSteps(TrainerCallback):
    """Requests a log, an evaluation and a checkpoint after each of the steps ``ends``."""

    def __init__(self, ends):
        self.ends = {*ends}

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step in self.ends:
            control.should_log = control.should_evaluate = control.should_save = True


def evaluations_since_best(state, args):
    """The number of evaluations since the best one, from the run's log, which a resumed run has as well; 0 as long as
    no score is above 0, because such a model has only begun to learn."""
    values = dev_scores_so_far(state, args)
    best = max(values, default=0)
    return len(values) - 1 - values.index(best) if best > 0 else 0


def dev_scores_so_far(state, args):
    """The dev scores that choose the epoch, one for each evaluation."""
    name = f"eval_{args.metric_for_best_model}"
    return [entry[name] for entry in state.log_history if name in entry]


class WeightAverage(TrainerCallback):
    """average <- d * average + (1 - d) * learned weights after every fifth step (``UPDATE_EVERY``), with d = decay^5;
    early on decay is (1 + step) / (10 + step). The average reaches back about 1 / (1 - decay) steps."""

    def __init__(self, model, decay):
        self.decay = decay
        self.parameters = {name: p for name, p in model.named_parameters() if not p.stop_gradient}
        self.average = None

    @paddle.no_grad()
    def on_step_end(self, args, state, control, **kwargs):
        if self.average is None:
            self.average = self._copy()
        if state.global_step % UPDATE_EVERY:
            return
        decay = min(self.decay, (1 + state.global_step) / (10 + state.global_step)) ** UPDATE_EVERY
        for name, parameter in self.parameters.items():
            self.average[name].scale_(decay).add_(parameter.astype("float32") * (1 - decay))

    @contextlib.contextmanager
    def applied(self):
        """Within this block the model has the average as its weights."""
        before = self._copy()
        self.apply()
        try:
            yield
        finally:
            self._set(before)

    def apply(self):
        """Give the model the average as its weights."""
        if self.average is not None:
            self._set(self.average)

    def save(self, path):
        """Write the average, from which training resumes."""
        write_tensors(path, self.average if self.average is not None else self._copy())

    def load(self, path):
        """Read what :meth:`save` wrote."""
        tensors = read_checkpoint_tensors(path)
        self.average = {name: paddle.to_tensor(tensors[name]) for name in self.parameters}

    def _copy(self):
        return {name: parameter.astype("float32").clone() for name, parameter in self.parameters.items()}

    def _set(self, values):
        for name, parameter in self.parameters.items():
            parameter.set_value(values[name].astype(parameter.dtype))


class TrainingProgress(TrainerCallback):
    """Shows phase, steps, loss and remaining time on standard error: as a bar on a terminal, elsewhere as a line a
    minute."""

    def __init__(self, phase):
        self.phase, self.bar = phase, None

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_local_process_zero:
            self._told = time.monotonic()
            shown = {"file": sys.stderr} if sys.stderr.isatty() else {"file": io.StringIO(), "bar_format": LINE}
            self.bar = tqdm(
                total=state.max_steps, initial=state.global_step, desc=self.phase, unit="step", dynamic_ncols=True,
                delay=SHOWN_AFTER, smoothing=0, **shown,
            )  # fmt: skip

    def on_log(self, args, state, control, logs=None, **kwargs):
        if self.bar is not None and "loss" in (logs or {}):
            self.bar.set_postfix_str(f"loss {logs['loss']:.4g}", refresh=False)

    def on_step_end(self, args, state, control, **kwargs):
        if self.bar is None:
            return
        self.bar.update(state.global_step - self.bar.n)
        is_due = time.monotonic() - self._told >= SECONDS_A_LINE and state.global_step < state.max_steps
        if self.bar.bar_format and is_due:
            self._told = time.monotonic()
            print(self.bar, file=sys.stderr, flush=True)

    def close(self):
        """End the line of the bar, so that the next output begins a new one."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
