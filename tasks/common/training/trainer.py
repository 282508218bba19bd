"""PaddleNLP's Trainer with what every recipe needs: the only file that knows its internals."""

import contextlib
import math
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.io import BatchSampler, DistributedBatchSampler
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


class RecipeTrainer(Trainer):
    """Batches of texts of similar length, averaged weights, early stopping, and checkpoints from which a run resumes
    as if it had not been interrupted."""

    def __init__(
        self,
        monitor,  # VisualDLMonitor of the run
        score_dev,  # function without arguments: dev scores of the current weights, by name
        lengths,  # of the training examples
        ema_decay=0.0,  # of the WeightAverage that is evaluated and kept; 0 for the plain weights
        patience=None,  # training ends after this many evaluations without a better one; None: never
        checkpoint_minutes=0.0,  # after which a checkpoint is due, also within an epoch; 0: only where ``args`` save
        phase="training",  # what is trained, as the progress bar calls it
        **kwargs,  # of PaddleNLP's Trainer
    ):
        super().__init__(**kwargs)
        self.started = time.perf_counter()  # or, in a resumed run, earlier by the seconds before its checkpoint
        self.monitor, self.score_dev, self.lengths, self.patience = monitor, score_dev, lengths, patience
        self.keeps_best, self.args.load_best_model_at_end = self.args.load_best_model_at_end, False
        self.average = callbacks.WeightAverage(self.model, ema_decay) if ema_decay else None
        self.progress = callbacks.TrainingProgress(phase)
        self._since_log = None  # the training loss since the last log, a tensor
        self._before = None  # what a resumed run had counted since its last log
        is_bfloat16 = self.args.bf16 and paddle.get_device() == "cpu"
        self._precision = bfloat16_products if is_bfloat16 else contextlib.nullcontext  # of a training step
        timer = callbacks.CheckpointTimer(60 * checkpoint_minutes)
        self.pop_callback(ProgressCallback)
        for callback in (
            callbacks.ClearedGradients(),
            callbacks.SeededSteps(),
            timer,
            self.average,
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

    def see_epochs_before(self, checkpoint):
        """Make the batches of the epochs before a checkpoint again, in order, for a collator that draws random numbers.
        PaddleNLP itself repeats the batches of the checkpoint's epoch."""
        sampler = self._get_train_sampler()
        steps = max(1, len(sampler) // self.args.gradient_accumulation_steps)
        for epoch in range(read_trainer_state(Path(checkpoint)).global_step // steps):
            sampler.set_epoch(epoch)
            for rows in sampler:
                self.data_collator([self.train_dataset[row] for row in rows])

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

    def log(self, logs, **kwargs):
        """Log numbers; raises InputError if the training loss has become NaN."""
        for name in ("loss", "train_loss"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise InputError(
                    f"{Path(self.args.output_dir).parent}: the training loss is {logs[name]} at step "
                    f"{self.state.global_step}: training has diverged; lower learning_rate, which is "
                    f"{self.args.learning_rate:g}, or set max_grad_norm"
                )
        super().log(logs, **kwargs)

    def create_optimizer(self, lr_scheduler=None):
        """See PaddleNLP's ``Trainer``, whose AdamW has no native operators. Biases and norms do not decay."""
        if self.optimizer is None:
            kept = {p.name for name, p in self.model.named_parameters() if "bias" in name or "norm" in name}
            self.optimizer = new_optimizer(
                self.args, lr_scheduler or self.lr_scheduler, self.model.parameters(), lambda name: name not in kept
            )
        return self.optimizer

    def training_step(self, model, inputs):
        """See PaddleNLP's ``Trainer``. The first step of a resumed run also includes the loss since the last log."""
        with self._precision():
            loss = super().training_step(model, inputs)
        if self._before is not None:
            # in the order in which an uninterrupted run adds them
            loss = loss.astype("float32") + paddle.to_tensor(self._before["loss"], dtype="float32")
            self._globalstep_last_logged = self._before["logged_step"]
            self._total_loss_scalar = self._before["total_loss"]
            self._before = None
        return loss

    def _maybe_log_save_evaluate(self, tr_loss, *args, **kwargs):
        self._since_log = tr_loss
        super()._maybe_log_save_evaluate(tr_loss, *args, **kwargs)

    def _get_train_sampler(self):
        return LengthGroupedBatchSampler(
            self.lengths,
            self.args.per_device_train_batch_size,
            seed=self.args.seed,
            num_replicas=self.args.dataset_world_size,
            rank=self.args.dataset_rank,
        )

    def _wrap_amp_model(self, args, model):
        if paddle.get_device() != "cpu":  # there, Paddle's mixed precision has no effect, and warns
            super()._wrap_amp_model(args, model)

    # ---- checkpoints, in place of PaddleNLP's pickles

    def _save_checkpoint(self, model, metrics=None):
        folder = checkpoint_path(self.args.output_dir, self.state.global_step)
        try:
            self._write_checkpoint(folder, metrics)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # an incomplete one only takes up disk space
            raise

    def _write_checkpoint(self, folder, metrics):
        folder.mkdir(exist_ok=True)
        if self.args.should_save:
            (folder / COMPLETE_FILE).unlink(missing_ok=True)
        name, rank = f"eval_{self.args.metric_for_best_model}", self.args.process_index
        best_before = self.state.best_model_checkpoint  # without it the checkpoint before this one is of no use
        if name in (metrics or {}) and (self.state.best_metric is None or metrics[name] > self.state.best_metric):
            self.state.best_metric, self.state.best_model_checkpoint = metrics[name], str(folder)
        progress = {
            "loss": self._since_log.item(),
            "logged_step": self._globalstep_last_logged,
            "total_loss": self._total_loss_scalar,
            "monitor": self.monitor.position(),
            "seconds": time.perf_counter() - self.started,
        }
        write_json(folder / checkpoints.PROGRESS_FILE.format(rank=rank), progress)
        if self.args.world_size > 1:
            dist.barrier()  # the checkpoint is complete when every process has written its part
        if not self.args.should_save:
            return
        checkpoints.write_tensors(folder / checkpoints.MODEL_FILE, self.model.state_dict())
        checkpoints.write_optimizer(folder, self.optimizer, self.lr_scheduler, self._loss_scaler)
        if self.average is not None:
            self.average.save(folder / checkpoints.AVERAGE_FILE)
        write_json(folder / checkpoints.TRAINER_STATE_FILE, vars(self.state))
        checkpoints.mark_complete(folder)
        checkpoints.remove_older(folder, [self.state.best_model_checkpoint, best_before], SAVED_BEFORE)

    @property
    def _loss_scaler(self):
        return self.scaler if self.do_grad_scaling else None

    def _ended_with(self, checkpoint):
        """Whether training had ended at a checkpoint; if so, load it, because PaddleNLP would make one more step."""
        state = read_trainer_state(Path(checkpoint))
        if not self._is_out_of_patience(state) and state.global_step < state.max_steps:
            return False
        self.state = state
        self._load_counts(checkpoint)
        self._load_from_checkpoint(checkpoint)
        return True

    def _load_from_checkpoint(self, checkpoint=None):
        if checkpoint is not None:
            self.model.set_state_dict(checkpoints.read_checkpoint_tensors(Path(checkpoint) / checkpoints.MODEL_FILE))
            if self.average is not None:
                self.average.load(Path(checkpoint) / checkpoints.AVERAGE_FILE)

    def _load_optimizer_and_scheduler(self, checkpoint):
        if checkpoint is not None:
            checkpoints.read_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler, self._loss_scaler)
            self._load_counts(checkpoint)

    def _load_rng_state(self, checkpoint):
        """There is none, see :class:`~paddle_rope.tasks.common.training.callbacks.SeededSteps`; PaddleNLP would read a
        pickle."""

    def _load_counts(self, checkpoint):
        """Restore what this process had counted since the last log."""
        file = checkpoints.PROGRESS_FILE.format(rank=self.args.process_index)
        with checkpoints.json_of(Path(checkpoint) / file) as progress:
            # + 0 raises an error unless it is a number
            self._before = {name: progress[name] + 0 for name in ("loss", "logged_step", "total_loss")}
            self.monitor.go_on_from(progress["monitor"])
            self.started -= progress["seconds"]


def new_optimizer(training, learning_rate, parameters, decays):
    """AdamW with clipping by the global norm, from the ``TrainingArguments`` of a run; ``decays`` is a function of a
    parameter's ``name``: whether ``weight_decay`` applies to it."""
    return AdamW(
        learning_rate=learning_rate,
        beta1=training.adam_beta1,
        beta2=training.adam_beta2,
        epsilon=training.adam_epsilon,
        parameters=parameters,
        weight_decay=training.weight_decay,
        apply_decay_param_fun=decays,
        grad_clip=ClipGradByGlobalNorm(training.max_grad_norm) if training.max_grad_norm > 0 else None,
        multi_precision=training.fp16_opt_level == "O2",
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


# ---- training counted in steps: one pass, in order, through batches that the data set makes


class StepTrainer(RecipeTrainer):
    """Makes one pass through a data set of batches; after the steps ``ends`` the run is logged, evaluated and saved.

    ``train_dataset`` is a list of batches, dicts of arrays: item i is always the same; its ``batches_per_step`` is
    processes times gradient accumulation steps. Other arguments as in :class:`RecipeTrainer`.
    """

    def __init__(self, ends: Iterable[int], **kwargs: Any):
        super().__init__(lengths=(), data_collator=lambda items: items[0], **kwargs)
        self.first_step, self.ends = 0, set(ends)

    def train(self, resume_from_checkpoint=None):
        if resume_from_checkpoint is not None:
            self.first_step = read_trainer_state(Path(resume_from_checkpoint)).global_step
        super().train(resume_from_checkpoint)

    def _maybe_log_save_evaluate(self, *args, **kwargs):
        if self.state.global_step in self.ends:
            self.ends.remove(self.state.global_step)  # PaddleNLP comes here again at the end of an epoch
            self.control.should_log = self.control.should_evaluate = self.control.should_save = True
        super()._maybe_log_save_evaluate(*args, **kwargs)

    def compute_loss(self, model, inputs):
        """The loss of a batch; its ``token_mask`` serves only to count tokens."""
        return model(**{name: value for name, value in inputs.items() if name != "token_mask"})[0]

    def _get_train_sampler(self):
        first = self.first_step * self.train_dataset.batches_per_step
        return InOrder(len(self.train_dataset), first, self.args.dataset_world_size, self.args.dataset_rank)


class InOrder(BatchSampler):
    """The batch numbers of the process ``rank``, one at a time and in order: its share of the ``total`` batches of all
    ``num_replicas`` processes, from the batch ``first`` on."""

    def __init__(self, total, first=0, num_replicas=1, rank=0):
        self.total, self.first, self.num_replicas, self.rank = total, first, num_replicas, rank

    def __iter__(self):
        return ([index] for index in range(self.first + self.rank, self.total, self.num_replicas))

    def __len__(self):
        return self.total // self.num_replicas  # also batches before the first: PaddleNLP counts steps by it
