"""Exponential moving average of a model's weights, which is evaluated and kept instead of the last weights."""

import contextlib

import paddle
from paddlenlp.trainer import TrainerCallback

from tasks.common.training.checkpoints import read_checkpoint_tensors, write_tensors

# Taken every so many steps, by the decay to this power: the same average but for the weights in between, and cheaper.
UPDATE_EVERY = 5


class WeightAverage(TrainerCallback):
    """average <- decay * average + (1 - decay) * weights after each step; early on decay is (1 + step) / (10 + step).

    Args:
        model: the ``paddle.nn.Layer`` whose learned parameters are averaged.
        decay: from 0 to less than 1, such as 0.998: the average reaches back about 1 / (1 - decay) steps.
    """

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
