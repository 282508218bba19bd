"""Runs that end at once, as by a power cut."""

import contextlib

import pytest

from tasks.common.training.monitor import VisualDLMonitor


class PowerCut(Exception):
    """Ends a run at once."""


@contextlib.contextmanager
def power_cut(step, group=None):
    """Within this block a training run, of any recipe, must end after this step.

    Args:
        step: of the optimizer.
        group: of the monitor, such as ``"pretraining"``, for one phase of a run; None for any.
    """
    original = VisualDLMonitor.on_step_end

    def on_step_end(self, args, state, control, **kwargs):
        original(self, args, state, control, **kwargs)
        if state.global_step == step and group in (None, self.group):
            raise PowerCut

    with pytest.MonkeyPatch.context() as patch, pytest.raises(PowerCut):
        patch.setattr(VisualDLMonitor, "on_step_end", on_step_end)
        yield
