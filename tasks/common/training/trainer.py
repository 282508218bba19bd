"""PaddleNLP's Trainer with what every recipe wants of it: the only file that knows its inside."""

import contextlib
import math
from pathlib import Path

import paddle.distributed as dist
from paddlenlp.trainer import Trainer, TrainerCallback, TrainerState

from tasks.common.errors import InputError
from tasks.common.training.checkpoints import (
    AVERAGE_FILE,
    MODEL_FILE,
    TRAINER_STATE_FILE,
    read_checkpoint_tensors,
    read_optimizer,
    read_random_state,
    write_optimizer,
    write_random_state,
    write_tensors,
)
from tasks.common.training.length_grouping import LengthGroupedBatchSampler
from tasks.common.training.weight_average import WeightAverage

COMPLETE_FILE = "complete"  # made last in a checkpoint: without it the checkpoint was cut while it was written


class RecipeTrainer(Trainer):
    """Batches of texts of like length, averaged weights, early stopping, and checkpoints from which a run resumes as if
    it had not been interrupted.

    Args:
        monitor: :class:`tasks.common.training.monitor.VisualDLMonitor` of the run.
        score_dev: function without arguments; the dev scores of the model as it is, by name.
        lengths: length of each training example.
        ema_decay: of the :class:`WeightAverage` that is evaluated and kept; 0 for the plain weights.
        patience: evaluations without a better one after which training ends; None for never.
        kwargs: of PaddleNLP's ``Trainer``.
    """

    def __init__(self, monitor, score_dev, lengths, ema_decay=0.0, patience=None, **kwargs):
        super().__init__(**kwargs)
        self.monitor = monitor
        self.score_dev = score_dev
        self.lengths = lengths
        self.average = WeightAverage(self.model, ema_decay) if ema_decay else None
        self.patience = patience
        self.add_callback(_EpochStart())
        if self.average is not None:
            self.add_callback(self.average)
        if patience is not None:
            self.add_callback(_EarlyStopping(patience))
        self.add_callback(monitor)

    def train(self, resume_from_checkpoint=None):
        """Train, from the start or from a checkpoint folder; the model has the best evaluated weights then, or the last
        where ``load_best_model_at_end`` is not set."""
        keeps_best = self.args.load_best_model_at_end
        if resume_from_checkpoint is None or not self._ended_with(resume_from_checkpoint):
            self.args.load_best_model_at_end = False  # PaddleNLP would read a pickle
            super().train(resume_from_checkpoint=resume_from_checkpoint and str(resume_from_checkpoint))
            self.args.load_best_model_at_end = keeps_best
        if keeps_best and self.state.best_model_checkpoint is not None:
            if self.args.world_size > 1:
                dist.barrier()  # the first process has written it
            self._load_from_checkpoint(self.state.best_model_checkpoint)
            if self.average is not None:
                self.average.load(Path(self.state.best_model_checkpoint) / AVERAGE_FILE)
        if self.average is not None:
            self.average.apply()

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

    def _ended_with(self, checkpoint):
        """Whether training had come to its end; then its weights are loaded. PaddleNLP would take a step more."""
        state = TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_FILE))
        stopped = self.patience is not None and _epochs_since_best(state, self.args) >= self.patience
        if not stopped and state.global_step < state.max_steps:
            return False
        self.state = state
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
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"eval_{self.args.metric_for_best_model}"
        if name in (metrics or {}) and (self.state.best_metric is None or metrics[name] > self.state.best_metric):
            self.state.best_metric, self.state.best_model_checkpoint = metrics[name], str(folder)
        write_random_state(folder, self.args.process_index)
        if self.args.world_size > 1:
            dist.barrier()  # the checkpoint is complete when every process has written its part
        if not self.args.should_save:
            return
        write_tensors(folder / MODEL_FILE, self.model.state_dict())
        write_optimizer(folder, self.optimizer, self.lr_scheduler, self.scaler if self.do_grad_scaling else None)
        if self.average is not None:
            self.average.save(folder / AVERAGE_FILE)
        self.state.save_to_json(str(folder / TRAINER_STATE_FILE))
        self._rotate_checkpoints(output_dir=self.args.output_dir)

    def _rotate_checkpoints(self, use_mtime=False, output_dir=None):
        # the last thing that is done with a new checkpoint, and before an older one is removed
        (Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}" / COMPLETE_FILE).touch()
        super()._rotate_checkpoints(use_mtime=False, output_dir=output_dir)

    def _load_from_checkpoint(self, resume_from_checkpoint=None):
        if resume_from_checkpoint:
            self.model.set_state_dict(read_checkpoint_tensors(Path(resume_from_checkpoint) / MODEL_FILE))

    def _load_optimizer_and_scheduler(self, checkpoint):
        if checkpoint is None:
            return
        scaler = self.scaler if self.do_grad_scaling else None
        read_optimizer(Path(checkpoint), self.optimizer, self.lr_scheduler, scaler)
        self._load_rng_state(checkpoint)  # PaddleNLP calls it only for checkpoints in the middle of an epoch
        if self.average is not None:
            self.average.load(Path(checkpoint) / AVERAGE_FILE)

    def _load_rng_state(self, checkpoint):
        if checkpoint is not None:
            read_random_state(Path(checkpoint), self.args.process_index)


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


def _epochs_since_best(state, args):
    name = f"eval_{args.metric_for_best_model}"
    values = [entry[name] for entry in state.log_history if name in entry]
    return len(values) - 1 - values.index(max(values))


def _moved(checkpoint, args):
    """The checkpoint in the folder of the run, which may have been moved since."""
    return str(Path(args.output_dir) / Path(checkpoint).name)


def last_checkpoint(folder):
    """The newest checkpoint in ``folder``, the trainer's ``output_dir``, that was written to its end; raises InputError
    if there is none."""
    complete = {int(path.parent.name.split("-")[1]): path.parent for path in Path(folder).glob(f"*/{COMPLETE_FILE}")}
    if not complete:
        raise InputError(f"{folder}: no checkpoint was written before the run ended; train anew, in another folder")
    return complete[max(complete)]
