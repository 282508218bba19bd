"""What VisualDL shows of a training run."""

import contextlib
import io
import math
import os
import time
from pathlib import Path

import numpy as np
import paddle
import yaml
from paddlenlp.trainer import TrainerCallback
from visualdl import LogWriter

from paddle_rope.tasks.common.errors import visible

HISTOGRAM_BUCKETS = 40
PICTURE_SHARE = 0.1
TRAINING = "1_train"  # VisualDL sorts groups of charts by name, and opens only the first


class VisualDLMonitor(TrainerCallback):
    """Writes loss, learning rate, gradient norm and speed as ``1_train/...`` and evaluations as ``dev/...``; a metric
    ``group/rest`` becomes ``dev_group/rest``, a group of charts.

    Args:
        log_dir: folder of the VisualDL log.
        settings: dict of the run's settings, shown as text; None shows none.
        metrics, hyper_parameters: names of the metrics, and of the settings, that runs are compared by.
        group: name of the group of charts that training is shown in.
        log_histograms: also write histograms of every weight at each evaluation, and of its gradient in the first step
            of training and after each evaluation.
    """

    def __init__(self, log_dir, settings=None, metrics=(), log_histograms=False, hyper_parameters=(), group=TRAINING):
        self.log_dir, self.settings, self.hyper_parameters = str(log_dir), settings, hyper_parameters
        self.metrics, self.group = metrics, group
        self.log_histograms = self._gradients_due = log_histograms
        self.writer = None
        self._goes_on = False
        self._step_seconds, self._steps = 0.0, 0  # since the last call of seconds_per_step
        self._begun, self._showing = time.perf_counter(), 0.0
        self._reset()

    def position(self):
        """The state from which a run resumes the log, as JSON: the file and its length in bytes."""
        if self.writer is None:
            return {}
        self.writer.flush()
        path = Path(self.writer.file_name)
        return {"file": path.name, "bytes": path.stat().st_size}

    def go_on_from(self, position):
        """Resume at a :meth:`position`; later entries will be logged again."""
        self._goes_on = True
        if "file" not in position:
            return
        path = Path(self.log_dir) / Path(position["file"]).name
        if path.is_file() and path.stat().st_size > position["bytes"] >= 0:
            os.truncate(path, position["bytes"])

    def seconds_per_step(self):
        """Mean seconds per step of this process since the last call, without evaluations."""
        mean = self._step_seconds / max(1, self._steps)
        self._step_seconds, self._steps = 0.0, 0
        return mean

    @contextlib.contextmanager
    def showing(self):
        """Whether there is time to show an evaluation in pictures now, which take at most ``PICTURE_SHARE`` of the
        time; the time spent within the block is counted."""
        begin = time.perf_counter()
        yield self.writer is not None and self._showing <= PICTURE_SHARE * (begin - self._begun)
        self._showing += time.perf_counter() - begin

    def _reset(self):
        self._seconds = 0.0
        self._tokens = 0
        self._gradient_norm = None

    @contextlib.contextmanager
    def opened(self):
        """Within this block, after training, entries are added to the log."""
        self._open()
        try:
            yield
        finally:
            self._close()

    def _open(self):
        earlier = sorted(Path(self.log_dir).glob("*vdlrecords*"))  # VisualDL shows one file
        with contextlib.redirect_stdout(io.StringIO()):  # VisualDL prints that the file exists
            self.writer = LogWriter(logdir=self.log_dir, file_name=earlier[-1].name if earlier else "")

    def _close(self):
        self.writer.close()
        self.writer = None

    def on_train_begin(self, args, state, control, **kwargs):
        if not state.is_world_process_zero:
            return
        self._open()
        if self.settings is None or self._goes_on:
            return
        # on one line, since VisualDL shows a text without its line ends
        text = yaml.safe_dump(
            self.settings, allow_unicode=True, sort_keys=False, width=math.inf, default_flow_style=True
        )
        self.writer.add_text("configuration", visible(text.strip()), step=0)
        hyper_parameters = {key: _plain(self.settings[key]) for key in self.hyper_parameters if key in self.settings}
        self.writer.add_hparams(hyper_parameters, [f"dev/{name}" for name in self.metrics])

    def on_load_data_end(self, args, state, control, inputs=None, **kwargs):
        masks = [inputs[name] for name in ("token_mask", "attention_mask") if name in inputs]
        # packed rows have no mask, and hardly any padding; a sum stays on the device until it is logged
        self._in_batch = masks[0].sum() if masks else inputs["input_ids"].size
        self._step_start = time.perf_counter()

    def on_substep_end(self, args, state, control, **kwargs):  # of a batch whose gradients are accumulated
        seconds = time.perf_counter() - self._step_start
        self._seconds += seconds
        self._step_seconds += seconds
        self._tokens = self._tokens + self._in_batch

    def on_step_end(self, args, state, control, **kwargs):
        self.on_substep_end(args, state, control)
        self._steps += 1

    def on_optimizer_begin(self, args, state, control, scaler=None, model=None, **kwargs):
        if self.writer is None:
            return
        scale = 1.0 if scaler is None else scaler._scale.item()
        if self._gradients_due:
            gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
            self._write_histograms("gradients", gradients, state.global_step + 1, scale)
            self._gradients_due = False
        if (state.global_step + 1) % args.logging_steps == 0:
            squares = [paddle.square(p.grad.astype("float32")).sum() for p in model.parameters() if p.grad is not None]
            self._gradient_norm = float(paddle.sqrt(paddle.add_n(squares))) / scale

    def on_log(self, args, state, control, logs=None, **kwargs):
        """Write the state of training: the loss is the mean since the last log, and the speed excludes evaluation."""
        if self.writer is None or "loss" not in logs:
            return
        values = {"loss": logs["loss"], "learning_rate": logs["learning_rate"]}
        if self._gradient_norm is not None:
            values["gradient_norm"] = self._gradient_norm
        if self._seconds > 0:
            values["characters_per_second"] = float(self._tokens) / self._seconds
        self._write(self.group, values, state.global_step)
        self._reset()

    def on_evaluate(self, args, state, control, metrics=None, model=None, **kwargs):
        if self.writer is None:
            return
        scores = {name[len("eval_") :]: value for name, value in metrics.items() if name.startswith("eval_")}
        self._write("dev", scores, state.global_step)
        if self.log_histograms:
            self._write_histograms("weights", dict(model.named_parameters()), state.global_step)
            self._gradients_due = True

    def on_train_end(self, args, state, control, **kwargs):
        if self.writer is not None:
            self._close()

    def _write(self, group, values, step):
        for name, value in values.items():
            tag = f"{group}_{name}" if "/" in name else f"{group}/{name}"
            self.writer.add_scalar(allowed_tag(tag), float(value), step)
        self.writer.flush()

    def _write_histograms(self, group, tensors, step, scale=1.0):
        for name, tensor in tensors.items():
            values = tensor.astype("float32").numpy().ravel() / scale
            if np.isfinite(values).all():  # gradients of mixed precision may overflow; that step is then left out
                self.writer.add_histogram(f"{group}/{name}", values, step, buckets=HISTOGRAM_BUCKETS)


def _plain(value):
    """A value of a type that the hyper-parameter view accepts."""
    if isinstance(value, (int, float)):
        return value
    return visible(",".join(map(str, value)) if isinstance(value, list) else str(value))


def allowed_tag(tag):
    """A tag without the one character that VisualDL refuses, and with escapes for invisible ones."""
    return visible(tag.replace("%", "％"))
