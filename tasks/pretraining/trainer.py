"""The trainer of pretraining: batches in the order of the stages, held-out scores at the end of each."""

import paddle
from tqdm import tqdm

from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.common.inference import evaluation_mode
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.step_trainer import StepTrainer


class PretrainingTrainer(StepTrainer):
    """Trains through :class:`~tasks.pretraining.batches.StageBatches` once, with a :class:`PretrainingMonitor`; ``dev``
    has the :class:`~tasks.pretraining.batches.DevBatches` of each stage, ``kwargs`` are of PaddleNLP's ``Trainer``."""

    def __init__(self, monitor, dev, **kwargs):
        super().__init__(monitor, self.score_stage, kwargs["train_dataset"].ends, **kwargs)
        self.dev = dev

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

    def on_batch(self, logits, labels):
        """Counts the tokens that are predicted right."""
        self.monitor.count(*count_right(logits, labels))

    def log(self, logs, **kwargs):
        """Adds the accuracy since the last log to the loss."""
        if "loss" in logs:
            logs["accuracy"] = self.monitor.take_accuracy()
        super().log(logs, **kwargs)


class PretrainingMonitor(VisualDLMonitor):
    """Also shows the accuracy of training."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._right = self._hidden = 0  # since the last log

    def count(self, right, hidden):
        """Add to the counts of correct and of hidden tokens."""
        self._right, self._hidden = self._right + right, self._hidden + hidden  # stays on the device until it is logged

    def position(self):
        return {**super().position(), "right": int(self._right), "hidden": self._hidden}

    def go_on_from(self, position):
        super().go_on_from(position)
        self._right, self._hidden = int(position["right"]), int(position["hidden"])

    def take_accuracy(self):
        """Accuracy since the last call."""
        accuracy = float(self._right) / self._hidden
        self._right = self._hidden = 0
        return accuracy

    def on_log(self, args, state, control, logs=None, **kwargs):
        super().on_log(args, state, control, logs=logs, **kwargs)
        if self.writer is not None and "loss" in logs:
            self._write(self.group, {"accuracy": logs["accuracy"]}, state.global_step)


def count_right(logits, labels):
    """(how many hidden tokens get the highest score, on the device; how many there are).

    ``logits`` are ``[labeled, vocab]``, of the labeled tokens in their order; ``labels`` int64 ``[batch, seq]``, -100
    where there is nothing to predict.
    """
    wanted = labels[labels != IGNORED_LABEL]
    return (logits.detach().argmax(axis=-1) == wanted).sum(), wanted.shape[0]


def evaluate_model(model, batches):
    """dict with mean ``loss`` and ``accuracy`` of a :class:`RoFormerForMaskedLM` over all hidden tokens of
    :class:`~tasks.pretraining.batches.DevBatches`."""
    total_loss = total_right = total = 0
    with evaluation_mode(model):
        for batch in batches:
            if not (batch["labels"] != IGNORED_LABEL).any():
                continue
            inputs = {name: paddle.to_tensor(array) for name, array in batch.items() if name != "token_mask"}
            loss, logits = model(**inputs)
            right, hidden = count_right(logits, inputs["labels"])
            total_loss += float(loss) * hidden
            total_right += int(right)
            total += hidden
    return {"loss": total_loss / total, "accuracy": total_right / total}
