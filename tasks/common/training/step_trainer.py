"""Training that counts in steps: batches that the data set makes, in their order, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paddle.io import BatchSampler
from paddlenlp.trainer import TrainerCallback

from tasks.common.training.checkpoints import read_trainer_state
from tasks.common.training.trainer import RecipeTrainer


class StepTrainer(RecipeTrainer):
    """Trains through a data set of batches once; after the steps ``ends`` the run is logged, evaluated and kept.

    ``train_dataset`` is a list of batches, dicts of arrays: item i is the same whenever it is asked for; its
    ``batches_per_step`` is processes times accumulated gradients. Other arguments are as of :class:`RecipeTrainer`.
    """

    def __init__(self, monitor: Any, score_dev: Callable[[], dict[str, float]], ends: Iterable[int], **kwargs: Any):
        super().__init__(monitor, score_dev, lengths=(), data_collator=lambda items: items[0], **kwargs)
        self.first_step = 0
        self.watch = _StepWatch(ends)
        self.add_callback(self.watch)

    def train(self, resume_from_checkpoint=None):
        if resume_from_checkpoint is not None:
            self.first_step = read_trainer_state(Path(resume_from_checkpoint)).global_step
        super().train(resume_from_checkpoint)

    def compute_loss(self, model, inputs, return_outputs=False):
        """The loss of a batch, whose ``token_mask`` only counts tokens."""
        inputs = {name: value for name, value in inputs.items() if name != "token_mask"}
        loss, logits = model(**inputs)
        return (loss, (loss, logits)) if return_outputs else loss

    def _get_train_sampler(self):
        first = self.first_step * self.train_dataset.batches_per_step
        return InOrder(len(self.train_dataset), first, self.args.dataset_world_size, self.args.dataset_rank)


class _StepWatch(TrainerCallback):
    """Has the run logged, evaluated and kept after the steps ``ends``; times steps, evaluations left out."""

    def __init__(self, ends):
        self.ends = set(ends)
        self._seconds, self._steps = 0.0, 0

    def seconds_per_step(self):
        """Mean over the steps that this process has made since the last call."""
        mean = self._seconds / max(1, self._steps)
        self._seconds, self._steps = 0.0, 0
        return mean

    def on_step_begin(self, args, state, control, **kwargs):
        self._step_start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self._seconds += time.perf_counter() - self._step_start
        self._steps += 1
        if state.global_step in self.ends:
            control.should_log = control.should_evaluate = control.should_save = True


class InOrder(BatchSampler):
    """The numbers of the batches of one process, one at a time, in their order: of ``total`` batches of all
    ``num_replicas`` processes from the batch ``first`` on, those of the process ``rank``."""

    def __init__(self, total, first=0, num_replicas=1, rank=0):
        self.total, self.first, self.num_replicas, self.rank = total, first, num_replicas, rank

    def __iter__(self):
        return ([index] for index in range(self.first + self.rank, self.total, self.num_replicas))

    def __len__(self):
        return self.total // self.num_replicas  # with the ones before the first: PaddleNLP counts steps by it
