"""The trainer of pretraining: batches in the order of the stages, held-out scores at the end of each."""

import time
from pathlib import Path

import numpy as np
import paddle
from paddlenlp.trainer import TrainerCallback, TrainerState
from tqdm import tqdm

from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.common.inference import evaluation_mode
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.trainer import TRAINER_STATE_FILE, RecipeTrainer
from tasks.pretraining.batches import InOrder, only_item


class PretrainingTrainer(RecipeTrainer):
    """Trains through :class:`~tasks.pretraining.batches.StageBatches` once.

    Args:
        monitor: :class:`PretrainingMonitor`.
        dev: list of :class:`~tasks.pretraining.batches.DevBatches`, one for each stage.
        kwargs: of PaddleNLP's ``Trainer``.
    """

    def __init__(self, monitor, dev, **kwargs):
        super().__init__(monitor, self.score_stage, lengths=(), data_collator=only_item, **kwargs)
        self.dev = dev
        self.first_step = 0
        self.watch = _StageWatch(self.train_dataset.ends)
        self.add_callback(self.watch)

    def train(self, resume_from_checkpoint=None):
        """Train, from the start or from a checkpoint folder."""
        if resume_from_checkpoint is not None:
            state = TrainerState.load_from_json(str(Path(resume_from_checkpoint) / TRAINER_STATE_FILE))
            self.first_step = state.global_step
        super().train(resume_from_checkpoint)

    def score_stage(self):
        """Loss and accuracy of the hidden tokens of the dev documents, in rows of the length of the stage that ends."""
        number = self.train_dataset.ends.index(self.state.global_step)
        stage = self.train_dataset.stages[number]
        scores = evaluate_model(self.model, self.dev[number])
        scores["seconds_per_step"] = self.watch.seconds_per_step()
        if self.is_world_process_zero():
            tqdm.write(
                f"stage {number + 1} of {len(self.dev)}: length {stage.max_tokens}, batch {stage.batch_size}, "
                f"{stage.steps} steps  dev loss {scores['loss']:.4f}  accuracy {scores['accuracy']:.4f}  "
                f"{scores['seconds_per_step']:.3f} s a step"
            )
        return scores

    def compute_loss(self, model, inputs, return_outputs=False):
        """The loss of a batch; counts the tokens that are predicted right."""
        inputs = {name: value for name, value in inputs.items() if name != "token_mask"}
        loss, logits = model(**inputs)
        self.monitor.count(*count_right(logits, inputs["labels"]))
        return (loss, (loss, logits)) if return_outputs else loss

    def log(self, logs, **kwargs):
        """Adds the accuracy since the last log to the loss."""
        if "loss" in logs:
            logs["accuracy"] = self.monitor.take_accuracy()
        super().log(logs, **kwargs)

    def _get_train_sampler(self):
        return InOrder(
            len(self.train_dataset),
            self.first_step * self.train_dataset.batches_per_step,
            self.args.dataset_world_size,
            self.args.dataset_rank,
        )


class PretrainingMonitor(VisualDLMonitor):
    """Also shows the accuracy of training."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._right = self._hidden = 0

    def count(self, right, hidden):
        """Add to the tokens predicted right, and to those that were hidden."""
        self._right, self._hidden = self._right + right, self._hidden + hidden  # stays on the device until it is logged

    def take_accuracy(self):
        """Accuracy since the last call."""
        accuracy = float(self._right) / self._hidden
        self._right = self._hidden = 0
        return accuracy

    def on_log(self, args, state, control, logs=None, **kwargs):
        super().on_log(args, state, control, logs=logs, **kwargs)
        if self.writer is not None and "loss" in logs:
            self._write(self.group, {"accuracy": logs["accuracy"]}, state.global_step)


class _StageWatch(TrainerCallback):
    """Has each stage logged, evaluated and kept at its end, and takes its time, evaluations and waiting left out."""

    def __init__(self, ends):
        self.ends = set(ends)
        self._start_stage()

    def seconds_per_step(self):
        """Mean over the steps of this stage that this process has made."""
        return self._seconds / self._steps

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step in self.ends:
            self._start_stage()
        self._step_start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self._seconds += time.perf_counter() - self._step_start
        self._steps += 1
        if state.global_step in self.ends:
            control.should_log = control.should_evaluate = control.should_save = True

    def _start_stage(self):
        self._seconds, self._steps = 0.0, 0


def count_right(logits, labels):
    """How many hidden tokens get the highest score, on the device, and how many there are.

    Args:
        logits: ``[labelled, vocab]``, of the labelled tokens in their order.
        labels: int64 ``[batch, seq]``, -100 where there is nothing to predict.
    """
    wanted = labels[labels != IGNORED_LABEL]
    return (logits.detach().argmax(axis=-1) == wanted).sum(), wanted.shape[0]


def evaluate_model(model, batches):
    """Mean loss and accuracy of a masked language model over all hidden tokens.

    Args:
        model: a :class:`RoFormerForMaskedLM`.
        batches: :class:`~tasks.pretraining.batches.DevBatches`.

    Returns:
        dict with ``loss`` and ``accuracy``.
    """
    total_loss = total_right = total = 0
    with evaluation_mode(model):
        for batch in batches:
            inputs = {name: paddle.to_tensor(array) for name, array in batch.items() if name != "token_mask"}
            if not np.any(batch["labels"] != IGNORED_LABEL):
                continue
            loss, logits = model(**inputs)
            right, hidden = count_right(logits, inputs["labels"])
            total_loss += float(loss) * hidden
            total_right += int(right)
            total += hidden
    return {"loss": total_loss / total, "accuracy": total_right / total}
