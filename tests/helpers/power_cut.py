"""A training run that ends at once, as if the power had been cut."""

import contextlib

import pytest

from tasks.common.training.monitor import TRAINING, VisualDLMonitor


class PowerCut(Exception):
    """Ends a run at once."""


@contextlib.contextmanager
def at_event(event, action, step=None, group=TRAINING):
    """In the block, ``action()`` is called after an event of training, such as "on_step_end", at the given step."""
    original = getattr(VisualDLMonitor, event)

    def then_act(self, args, state, control, **kwargs):
        original(self, args, state, control, **kwargs)
        if self.group == group and step in (None, state.global_step):
            action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VisualDLMonitor, event, then_act)
        yield


@contextlib.contextmanager
def power_cut(event, step=None, group=TRAINING):
    """The run in the block ends at an event of training."""

    def cut():
        raise PowerCut

    with pytest.raises(PowerCut), at_event(event, cut, step, group):
        yield
