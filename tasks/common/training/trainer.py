"""PaddleNLP's Trainer with what every recipe needs, by its public hooks and by callbacks; and the order of the batches.
:class:`CheckpointedTrainer` alone overrides private methods."""

import contextlib
import copy
import math
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.io import BatchSampler, DataLoader, DistributedBatchSampler
from paddle.nn import ClipGradByGlobalNorm
from paddlenlp.trainer import ProgressCallback, Trainer
from tqdm import tqdm

from paddle_rope.native.adamw import AdamW
from paddle_rope.native.products import bfloat16_products
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import write_json
from paddle_rope.tasks.common.training import callbacks, checkpoints
from paddle_rope.tasks.common.training.checkpoints import COMPLETE_FILE, checkpoint_path, read_trainer_state, step_of
from paddle_rope.tasks.common.training.interruption import end, is_requested, until_saved

SAVED_BEFORE = 1  # complete checkpoints that stay in addition to the newest and the best, in case the newest is damaged


class CheckpointedTrainer(Trainer):
    """PaddleNLP's Trainer with checkpoints in safetensors and JSON, from which a run resumes as if it had not been
    interrupted. PaddleNLP writes and reads pickles, which are programs, in four private methods. They have no public
    hook, so this class overrides them, and no other one does.

    Attributes:
        started: ``time.perf_counter()`` when training began; in a resumed run earlier by the seconds before its
            checkpoint.
        average: the :class:`~paddle_rope.tasks.common.training.callbacks.WeightAverage` of the run, or None.
        losses: the :class:`TrainingLosses` so far.
        monitor: the :class:`~paddle_rope.tasks.common.training.monitor.VisualDLMonitor` of the run.
    """

    def __init__(self, monitor: Any, average: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.started = time.perf_counter()
        self.monitor, self.average, self.losses = monitor, average, TrainingLosses()

    def _save_checkpoint(self, model, metrics=None):
        """Called when a callback has requested it, after the log and the evaluation of the step."""
        folder = checkpoint_path(self.args.output_dir, self.state.global_step)
        try:
            self.write_checkpoint(folder, metrics)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # an incomplete one only takes up disk space
            raise

    def _load_from_checkpoint(self, checkpoint=None):
        """Called with the folder to resume from, before there are optimizer and batches."""
        if checkpoint is not None:
            self.model.set_state_dict(checkpoints.read_checkpoint_tensors(Path(checkpoint) / checkpoints.MODEL_FILE))
            if self.average is not None:
                self.average.load(Path(checkpoint) / checkpoints.AVERAGE_FILE)

    def _load_optimizer_and_scheduler(self, checkpoint):
        """Called with the folder to resume from, before the first step."""
        if checkpoint is not None:
            checkpoints.read_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler, self.loss_scaler)
            self.read_progress(checkpoint)

    def _load_rng_state(self, checkpoint):
        """Called at the step to resume from. There is none, because
        :class:`~paddle_rope.tasks.common.training.callbacks.SeededSteps` seeds each step."""

    def write_checkpoint(self, folder: Path, metrics: dict[str, float] | None) -> None:
        """Write this process's part of a checkpoint; the first process then marks it as complete, and removes older
        ones."""
        folder.mkdir(exist_ok=True)
        if self.args.should_save:
            (folder / COMPLETE_FILE).unlink(missing_ok=True)
        name, rank = f"eval_{self.args.metric_for_best_model}", self.args.process_index
        best_before = self.state.best_model_checkpoint  # without it the checkpoint before this one is of no use
        if name in (metrics or {}) and (self.state.best_metric is None or metrics[name] > self.state.best_metric):
            self.state.best_metric, self.state.best_model_checkpoint = metrics[name], str(folder)
        seconds = time.perf_counter() - self.started
        progress = {**self.losses.progress(), "monitor": self.monitor.position(), "seconds": seconds}
        write_json(folder / checkpoints.PROGRESS_FILE.format(rank=rank), progress)
        if self.args.world_size > 1:
            dist.barrier()  # the checkpoint is complete when every process has written its part
        if not self.args.should_save:
            return
        checkpoints.write_tensors(folder / checkpoints.MODEL_FILE, self.model.state_dict())
        checkpoints.write_optimizer(folder, self.optimizer, self.lr_scheduler, self.loss_scaler)
        if self.average is not None:
            self.average.save(folder / checkpoints.AVERAGE_FILE)
        write_json(folder / checkpoints.TRAINER_STATE_FILE, vars(self.state))
        checkpoints.mark_complete(folder)
        checkpoints.remove_older(folder, [self.state.best_model_checkpoint, best_before], SAVED_BEFORE)

    def read_progress(self, checkpoint: str | Path) -> None:
        """Restore what this process had counted when it wrote its part of a checkpoint."""
        file = checkpoints.PROGRESS_FILE.format(rank=self.args.process_index)
        with checkpoints.json_of(Path(checkpoint) / file) as progress:
            self.losses = TrainingLosses(progress["loss"], progress["logged_step"], progress["total_loss"])
            self.monitor.go_on_from(progress["monitor"])
            self.started -= progress["seconds"]

    @property
    def loss_scaler(self) -> Any:
        """The scaler of float16 training, None without it."""
        return self.scaler if self.do_grad_scaling else None


class TrainingLosses:
    """Sums of the losses of steps: since the last log, as a tensor that stays on its device; before that, a number."""

    def __init__(self, since_log: float = 0.0, logged_step: int = 0, total: float = 0.0):
        # + 0 raises an error unless it is a number
        self.since_log = paddle.to_tensor(since_log + 0, dtype="float32")
        self.logged_step, self.total = logged_step + 0, total + 0

    def progress(self) -> dict[str, float]:
        """What a checkpoint has of them."""
        return {"loss": self.since_log.item(), "logged_step": self.logged_step, "total_loss": self.total}

    def mean_since_log(self, step: int, processes: int) -> float:
        """The mean over the steps since the last log, and over processes; the next one is over the following steps."""
        if processes > 1:
            dist.all_reduce(self.since_log)
        loss, steps = self.since_log.item() / processes, step - self.logged_step
        self.total += loss
        self.since_log, self.logged_step = paddle.zeros_like(self.since_log), step
        return loss / max(1, steps)


class RecipeTrainer(CheckpointedTrainer):
    """Batches of a sampler, averaged weights, early stopping."""

    def __init__(
        self,
        monitor,  # VisualDLMonitor of the run
        score_dev,  # function without arguments: dev scores of the current weights, by name
        sampler,  # of the batches: yields lists of numbers of training examples
        ema_decay=0.0,  # of the WeightAverage that is evaluated and kept; 0 for the plain weights
        patience=None,  # training ends after this many evaluations without a better one; None: never
        checkpoint_minutes=0.0,  # after which a checkpoint is due, also within an epoch; 0: only where ``args`` save
        ends=(),  # further steps after which to log, evaluate and save
        phase="training",  # what is trained, as the progress bar calls it
        **kwargs,  # of PaddleNLP's Trainer
    ):
        args = kwargs["args"] = copy.copy(kwargs["args"])
        self.keeps_best, args.load_best_model_at_end = args.load_best_model_at_end, False  # PaddleNLP reads a pickle
        is_bfloat16 = args.bf16 and paddle.get_device() == "cpu"
        self._precision = bfloat16_products if is_bfloat16 else contextlib.nullcontext  # of a training step
        args.bf16 = args.bf16 and not is_bfloat16  # on a CPU, Paddle's mixed precision has no effect, and warns
        average = callbacks.WeightAverage(kwargs["model"], ema_decay) if ema_decay else None
        super().__init__(monitor, average, **kwargs)
        self.score_dev, self.sampler, self.patience = score_dev, sampler, patience
        self.progress = callbacks.TrainingProgress(phase)
        self.pop_callback(ProgressCallback)
        for callback in (
            callbacks.ClearedGradients(),
            callbacks.SeededSteps(),
            callbacks.CheckpointTimer(60 * checkpoint_minutes),
            callbacks.EvaluatedSteps(ends),
            average,
            monitor,
            self.progress,
        ):
            if callback is not None:
                self.add_callback(callback)

    def train(self, resume_from_checkpoint=None):
        """Train, from the start or from a checkpoint folder; afterwards the model has the best evaluated weights, or
        the last if ``load_best_model_at_end`` was not set. Raises Interrupted after a signal, once a checkpoint has
        been written."""
        if resume_from_checkpoint is None or not self._ended_with(resume_from_checkpoint):
            with until_saved(), contextlib.closing(self.progress):  # the line of its bar ends before other output
                super().train(resume_from_checkpoint=resume_from_checkpoint and str(resume_from_checkpoint))
            if is_requested():
                end()
        last, best = checkpoint_path(self.args.output_dir, self.state.global_step), self.state.best_model_checkpoint
        if self.args.should_save and (last / COMPLETE_FILE).is_file():
            checkpoints.remove_older(last, [best], before=0)
        if self.keeps_best and best is not None:
            if self.args.world_size > 1:
                dist.barrier()  # until the first process has written it
            self._load_from_checkpoint(last.with_name(Path(best).name))  # the folder may have been moved
        if self.average is not None:
            self.average.apply()

    @property
    def kept_step(self) -> int:
        """After training, the step of the weights that the model has."""
        best = self.state.best_model_checkpoint if self.keeps_best else None
        return self.state.global_step if best is None else step_of(best)

    def _ended_with(self, checkpoint):
        """Whether training had ended at a checkpoint; if so, load it, because PaddleNLP would make one more step."""
        state = read_trainer_state(Path(checkpoint))
        if not self._is_out_of_patience(state) and state.global_step < state.max_steps:
            return False
        self.state = state
        self.read_progress(checkpoint)
        self._load_from_checkpoint(checkpoint)
        return True

    def see_epochs_before(self, checkpoint):
        """Make the batches of the epochs before a checkpoint again, in order, for a collator that draws random numbers.
        PaddleNLP itself repeats the batches of the checkpoint's epoch."""
        steps = max(1, len(self.sampler) // self.args.gradient_accumulation_steps)
        for epoch in range(read_trainer_state(Path(checkpoint)).global_step // steps):
            self.sampler.set_epoch(epoch)
            for rows in self.sampler:
                self.data_collator([self.train_dataset[row] for row in rows])

    # ---- PaddleNLP's hooks, in the order in which it calls them

    def get_train_dataloader(self):
        """The batches of the sampler."""
        return DataLoader(self.train_dataset, batch_sampler=self.sampler, collate_fn=self.data_collator)

    def create_optimizer(self, lr_scheduler=None):
        """See PaddleNLP's ``Trainer``, whose AdamW has no native operators. Biases and norms do not decay."""
        if self.optimizer is None:
            named = self.model.named_parameters()
            decaying = {parameter.name for name, parameter in named if "bias" not in name and "norm" not in name}
            schedule = lr_scheduler or self.lr_scheduler
            self.optimizer = new_optimizer(self.args, schedule, self.model.parameters(), decaying)
        return self.optimizer

    def training_step(self, model, inputs):
        """See PaddleNLP's ``Trainer``."""
        with self._precision():
            loss = super().training_step(model, inputs)
        self.losses.since_log += loss
        return loss

    def log(self, logs, **kwargs):
        """Log numbers, with the training loss as also a resumed run has counted it; raises InputError if it has become
        NaN."""
        step = self.state.global_step
        if "loss" in logs:
            logs["loss"] = round(self.losses.mean_since_log(step, self.args.world_size), 8)
        if "train_loss" in logs:  # of all steps, at the end
            self.losses.mean_since_log(step, self.args.world_size)
            logs["train_loss"] = self.losses.total / step
        for name in ("loss", "train_loss"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise InputError(
                    f"{Path(self.args.output_dir).parent}: the training loss is {logs[name]} at step {step}: training "
                    f"has diverged; lower learning_rate, which is {self.args.learning_rate:g}, or set max_grad_norm"
                )
        super().log(logs, **kwargs)

    def evaluate(self, **kwargs):
        """Score the weights that would be kept, and stop training after ``patience``, in every process."""
        with contextlib.nullcontext() if self.average is None else self.average.applied():
            metrics = {f"eval_{name}": value for name, value in self.score_dev().items()}
            self.log(dict(metrics))
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if self._is_out_of_patience(self.state):
            self.control.should_training_stop = True
            if self.is_world_process_zero() and self.state.global_step < self.state.max_steps:
                reason = f"{self.patience} epochs without a better dev score (early_stopping_patience)"
                tqdm.write(f"training stops: {reason}")
        return metrics

    def _is_out_of_patience(self, state):
        return self.patience is not None and callbacks.evaluations_since_best(state, self.args) >= self.patience


def new_optimizer(training, learning_rate, parameters, decaying):
    """AdamW with clipping by the global norm, from the ``TrainingArguments`` of a run; ``weight_decay`` applies to the
    parameters whose names are in ``decaying``."""
    return AdamW(
        learning_rate=learning_rate,
        parameters=parameters,
        weight_decay=training.weight_decay,
        apply_decay_param_fun=decaying.__contains__,
        grad_clip=ClipGradByGlobalNorm(training.max_grad_norm) if training.max_grad_norm > 0 else None,
    )


class LengthGroupedBatchSampler(DistributedBatchSampler):
    """Shuffles, then sorts by length within windows of ``window`` batches, then shuffles the batches.

    The order depends on the seed and the epoch alone; each of ``num_replicas`` processes takes its share of the
    batches. ``lengths`` has the length of each example, in the order of the data set.
    """

    def __init__(self, lengths, batch_size, seed=0, num_replicas=1, rank=0, window=50):
        self.lengths = np.asarray(lengths)
        self.seed = seed
        self.window = window
        super().__init__(self.lengths, batch_size, num_replicas=num_replicas, rank=rank, shuffle=True)

    @classmethod
    def of(cls, training, lengths):
        """The batches of a run with these ``TrainingArguments``, for this process."""
        processes = training.dataset_world_size, training.dataset_rank
        return cls(lengths, training.per_device_train_batch_size, training.seed, *processes)

    def __iter__(self):
        random = np.random.RandomState((self.seed * 1000003 + self.epoch) % 2**32)
        order = random.permutation(len(self.lengths))
        step = self.batch_size * self.nranks  # the processes' batches of one step are cut from one stretch
        if self.nranks > 1:
            order = np.concatenate([order, np.resize(order, -len(order) % step)])
        stretches = []
        for begin in range(0, len(order), step * self.window):
            part = order[begin : begin + step * self.window]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            stretches += [part[i : i + step] for i in range(0, len(part), step)]
        for index in random.permutation(len(stretches)):
            yield stretches[index][self.local_rank :: self.nranks].tolist()


class InOrder(BatchSampler):
    """The batch numbers of the process ``rank``, one at a time and in order: its share of the ``total`` batches of all
    ``num_replicas`` processes, from the batch ``first`` on."""

    def __init__(self, total, first=0, num_replicas=1, rank=0):
        self.total, self.first, self.num_replicas, self.rank = total, first, num_replicas, rank

    def __iter__(self):
        return ([index] for index in range(self.first + self.rank, self.total, self.num_replicas))

    def __len__(self):
        return self.total // self.num_replicas  # also batches before the first: PaddleNLP counts steps by it
