"""PaddleNLP's Trainer with what every recipe wants of it: the only file that knows its inside."""

import contextlib
import math
import shutil
import time
from pathlib import Path

import paddle
import paddle.distributed as dist
from paddlenlp.trainer import ProgressCallback, Trainer, TrainerCallback
from tqdm import tqdm

from paddle_rope.native.products import bfloat16_products
from tasks.common.cli.progress import TrainingProgress
from tasks.common.errors import InputError
from tasks.common.runs.interruption import end, is_requested, until_saved
from tasks.common.training.checkpoints import (
    AVERAGE_FILE,
    MODEL_FILE,
    TRAINER_STATE_FILE,
    read_checkpoint_tensors,
    read_optimizer,
    read_progress,
    read_random_state,
    read_trainer_state,
    write_optimizer,
    write_progress,
    write_random_state,
    write_tensors,
)
from tasks.common.training.complete import COMPLETE_FILE, checkpoint_path, mark_complete, remove_older
from tasks.common.training.length_grouping import LengthGroupedBatchSampler
from tasks.common.training.optimizer import new_optimizer
from tasks.common.training.weight_average import WeightAverage

SAVED_BEFORE = 1  # complete checkpoints that stay beside the newest and the best, should the newest be damaged
SECONDS_A_MINUTE = 60
ASKED_EVERY = 10  # steps; several processes ask each other whether a checkpoint is due


class RecipeTrainer(Trainer):
    """Batches of texts of like length, averaged weights, early stopping, and checkpoints from which a run resumes as if
    it had not been interrupted.

    Args:
        monitor: :class:`tasks.common.training.monitor.VisualDLMonitor` of the run.
        score_dev: function without arguments; the dev scores of the model as it is, by name.
        lengths: length of each training example.
        ema_decay: of the :class:`WeightAverage` that is evaluated and kept; 0 for the plain weights.
        patience: evaluations without a better one after which training ends; None for never.
        checkpoint_minutes: after which a checkpoint is due, also within an epoch; 0: only where ``args`` save.
        phase: what is trained, as the progress bar calls it.
        kwargs: of PaddleNLP's ``Trainer``.
    """

    def __init__(
        self,
        monitor,
        score_dev,
        lengths,
        ema_decay=0.0,
        patience=None,
        checkpoint_minutes=0.0,
        phase="training",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.pop_callback(ProgressCallback)
        self.progress = TrainingProgress(phase)
        self.monitor = monitor
        self.score_dev = score_dev
        self.lengths = lengths
        self.average = WeightAverage(self.model, ema_decay) if ema_decay else None
        self.patience = patience
        self._since_log = None  # the training loss since the last log, a tensor
        self._before = None  # what a resumed run had counted since its last log
        self._precision = contextlib.nullcontext  # of a training step
        if self.args.bf16 and paddle.get_device() == "cpu":
            self._precision = bfloat16_products
            self.enable_autocast_context_manager = False  # Paddle's leaves products in float32 on CPU
        self.add_callback(_EpochStart())
        self.add_callback(_Checkpoints(checkpoint_minutes * SECONDS_A_MINUTE))
        if self.average is not None:
            self.add_callback(self.average)
        if patience is not None:
            self.add_callback(_EarlyStopping(patience))
        self.add_callback(monitor)
        self.add_callback(self.progress)

    def train(self, resume_from_checkpoint=None):
        """Train, from the start or from a checkpoint folder; the model has the best evaluated weights then, or the last
        where ``load_best_model_at_end`` is not set.

        Raises:
            Interrupted: a signal has come, and a checkpoint has been written.
        """
        keeps_best = self.args.load_best_model_at_end
        if resume_from_checkpoint is None or not self._ended_with(resume_from_checkpoint):
            self.args.load_best_model_at_end = False  # PaddleNLP would read a pickle
            with until_saved(), self._progress_closed():
                super().train(resume_from_checkpoint=resume_from_checkpoint and str(resume_from_checkpoint))
            self.args.load_best_model_at_end = keeps_best
            if is_requested():
                end()
        last = checkpoint_path(self.args.output_dir, self.state.global_step)
        if self.args.should_save and (last / COMPLETE_FILE).is_file():
            remove_older(last, self.state.best_model_checkpoint, before=0)
        if keeps_best and self.state.best_model_checkpoint is not None:
            if self.args.world_size > 1:
                dist.barrier()  # the first process has written it
            self._load_from_checkpoint(self.state.best_model_checkpoint)
            if self.average is not None:
                self.average.load(Path(self.state.best_model_checkpoint) / AVERAGE_FILE)
        if self.average is not None:
            self.average.apply()

    def see_epochs_before(self, checkpoint):
        """Make the batches of the epochs before a checkpoint, in their order, for a collator that draws random numbers.
        Those of its own epoch PaddleNLP makes once more itself."""
        sampler = self._get_train_sampler()
        steps = max(1, len(sampler) // self.args.gradient_accumulation_steps)
        for epoch in range(read_trainer_state(Path(checkpoint)).global_step // steps):
            sampler.set_epoch(epoch)
            for rows in sampler:
                self.data_collator([self.train_dataset[row] for row in rows])

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        """Score the weights that would be kept; every process computes the same."""
        with contextlib.nullcontext() if self.average is None else self.average.applied():
            metrics = {f"{metric_key_prefix}_{name}": value for name, value in self.score_dev().items()}
            self.log(dict(metrics))
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def log(self, logs, **kwargs):
        """Log numbers, see PaddleNLP's ``Trainer``.

        Raises:
            InputError: the training loss is not a number any more.
        """
        for name in ("loss", "train_loss"):
            if not math.isfinite(logs.get(name, 0.0)):
                raise InputError(
                    f"{Path(self.args.output_dir).parent}: the training loss is {logs[name]} at step "
                    f"{self.state.global_step}: training has diverged; lower learning_rate, which is "
                    f"{self.args.learning_rate:g}, or set max_grad_norm"
                )
        super().log(logs, **kwargs)

    @contextlib.contextmanager
    def _progress_closed(self):
        """After an error the line of the progress bar ends, so that what is said next has its own."""
        try:
            yield
        finally:
            self.progress.close()

    def create_optimizer(self, lr_scheduler=None):
        """See PaddleNLP's ``Trainer``, whose AdamW has no native operators. Biases and norms do not decay."""
        if self.optimizer is None:
            kept = {p.name for name, p in self.model.named_parameters() if "bias" in name or "norm" in name}
            self.optimizer = new_optimizer(
                self.args, lr_scheduler or self.lr_scheduler, self.model.parameters(), lambda name: name not in kept
            )
        return self.optimizer

    def training_step(self, model, inputs):
        """See PaddleNLP's ``Trainer``. The first step of a resumed run has also the loss since the last log."""
        with self._precision():
            loss = super().training_step(model, inputs)
        if self._before is not None:
            # in the order in which an undisturbed run adds them
            loss = loss.astype("float32") + paddle.to_tensor(self._before["loss"], dtype="float32")
            self._globalstep_last_logged = self._before["logged_step"]
            self._total_loss_scalar = self._before["total_loss"]
            self._before = None
        return loss

    def _maybe_log_save_evaluate(self, tr_loss, *args, **kwargs):
        self._since_log = tr_loss
        super()._maybe_log_save_evaluate(tr_loss, *args, **kwargs)

    def _ended_with(self, checkpoint):
        """Whether training had come to its end; then its weights are loaded. PaddleNLP would take a step more."""
        state = read_trainer_state(Path(checkpoint))
        stopped = self.patience is not None and _epochs_since_best(state, self.args) >= self.patience
        if not stopped and state.global_step < state.max_steps:
            return False
        self.state = state
        self._load_rng_state(checkpoint)
        read_progress(Path(checkpoint), self.args.process_index, self._take_up)
        if self.args.load_best_model_at_end:
            state.best_model_checkpoint = _moved(state.best_model_checkpoint, self.args)
            return True
        if self.average is not None:
            self.average.load(Path(checkpoint) / AVERAGE_FILE)
        self._load_from_checkpoint(checkpoint)
        return True

    def _get_train_sampler(self):
        return LengthGroupedBatchSampler(
            self.lengths,
            self.args.per_device_train_batch_size,
            seed=self.args.seed,
            num_replicas=self.args.dataset_world_size,
            rank=self.args.dataset_rank,
        )

    def _save_checkpoint(self, model, metrics=None):
        """In place of PaddleNLP's, which writes pickles."""
        folder = checkpoint_path(self.args.output_dir, self.state.global_step)
        if not folder.parent.is_dir():
            raise InputError(f"{folder.parent}: was removed while the run worked in it; train anew")
        try:
            self._write_checkpoint(folder, metrics)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # what is not whole only takes room
            raise

    def _write_checkpoint(self, folder, metrics):
        folder.mkdir(exist_ok=True)
        if self.args.should_save:
            (folder / COMPLETE_FILE).unlink(missing_ok=True)
        name = f"eval_{self.args.metric_for_best_model}"
        if name in (metrics or {}) and (self.state.best_metric is None or metrics[name] > self.state.best_metric):
            self.state.best_metric, self.state.best_model_checkpoint = metrics[name], str(folder)
        write_random_state(folder, self.args.process_index)
        progress = {
            "loss": self._since_log.item(),
            "logged_step": self._globalstep_last_logged,
            "total_loss": self._total_loss_scalar,
            "monitor": self.monitor.position(),
        }
        write_progress(folder, self.args.process_index, progress)
        if self.args.world_size > 1:
            dist.barrier()  # the checkpoint is complete when every process has written its part
        if not self.args.should_save:
            return
        write_tensors(folder / MODEL_FILE, self.model.state_dict())
        write_optimizer(folder, self.optimizer, self.lr_scheduler, self.scaler if self.do_grad_scaling else None)
        if self.average is not None:
            self.average.save(folder / AVERAGE_FILE)
        self.state.save_to_json(str(folder / TRAINER_STATE_FILE))
        mark_complete(folder)
        remove_older(folder, self.state.best_model_checkpoint, SAVED_BEFORE)

    def _load_from_checkpoint(self, resume_from_checkpoint=None):
        if resume_from_checkpoint:
            self.model.set_state_dict(read_checkpoint_tensors(Path(resume_from_checkpoint) / MODEL_FILE))

    def _load_optimizer_and_scheduler(self, checkpoint):
        if checkpoint is None:
            return
        scaler = self.scaler if self.do_grad_scaling else None
        read_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler, scaler)
        self._load_rng_state(checkpoint)  # PaddleNLP calls it only for checkpoints in the middle of an epoch
        read_progress(Path(checkpoint), self.args.process_index, self._take_up)
        if self.average is not None:
            self.average.load(Path(checkpoint) / AVERAGE_FILE)

    def _load_rng_state(self, checkpoint):
        if checkpoint is not None:
            read_random_state(Path(checkpoint), self.args.process_index)

    def _take_up(self, progress):
        """Go on with what :func:`write_progress` wrote."""
        counted = {name: progress[name] for name in ("loss", "logged_step", "total_loss")}
        if not all(isinstance(value, (int, float)) for value in counted.values()):
            raise TypeError(f"not numbers: {counted}")
        self._before = counted
        self.monitor.go_on_from(progress["monitor"])


class _Checkpoints(TrainerCallback):
    """Has a checkpoint written ``seconds`` after the last one, and at the end; after a signal it then ends the run.

    After the last step of an epoch it waits for the end of the epoch: from in between no run could be resumed, since
    steps alone do not tell whether the batches that were left over, and the evaluation, have been.
    """

    def __init__(self, seconds):
        self.seconds = seconds
        self._saved, self._saved_step = 0.0, None
        self._ends = False  # after the next checkpoint

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
            dist.barrier()  # the first process has marked it
        if self._ends or (args.world_size == 1 and is_requested()):
            end()

    def _is_due(self, args):
        """The same in all processes."""
        is_due, self._ends = 0 < self.seconds <= time.monotonic() - self._saved, is_requested()
        if args.world_size > 1:
            asked = paddle.to_tensor([int(is_due), int(self._ends)], dtype="int64")
            dist.all_reduce(asked, op=dist.ReduceOp.MAX)
            is_due, self._ends = map(bool, asked.tolist())
        return is_due or self._ends


class _EpochStart(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        if state.best_model_checkpoint:  # of a resumed run
            state.best_model_checkpoint = _moved(state.best_model_checkpoint, args)

    def on_epoch_begin(self, args, state, control, optimizer=None, **kwargs):
        # gradients of batches that did not fill up gradient_accumulation_steps at the end of the epoch before
        optimizer.clear_grad()


class _EarlyStopping(TrainerCallback):
    """Counts in the log of the run, not in an attribute, so that a resumed run stops where it would have."""

    def __init__(self, patience):
        self.patience = patience

    def on_evaluate(self, args, state, control, **kwargs):
        if _epochs_since_best(state, args) >= self.patience:
            control.should_training_stop = True
            if state.is_local_process_zero and state.global_step < state.max_steps:
                tqdm.write(
                    f"training stops: {self.patience} epochs without a better dev score (early_stopping_patience)"
                )


def _epochs_since_best(state, args):
    """Evaluations after the best one; 0 as long as no score is above 0, since such a model has only begun to learn."""
    values = dev_scores_so_far(state, args)
    best = max(values, default=0)
    return len(values) - 1 - values.index(best) if best > 0 else 0


def dev_scores_so_far(state, args):
    """The dev scores that choose the epoch, one of each evaluation."""
    name = f"eval_{args.metric_for_best_model}"
    return [entry[name] for entry in state.log_history if name in entry]


def _moved(checkpoint, args):
    """The checkpoint in the folder of the run, which may have been moved since."""
    return str(Path(args.output_dir) / Path(checkpoint).name)
