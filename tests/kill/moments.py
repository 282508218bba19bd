"""Moments of a process: the events that Python's profiler sees while a function works, and death at one of them."""

import functools
import json
import os
import pkgutil
import signal
import sys


class Zone:
    """Calls of a function, each with its profiler events: entries and ends of Python and C functions.

    Args:
        name: of the function, such as ``"tasks.common.training.trainer:RecipeTrainer.evaluate"``.
        target: (call, event), counted from 0, at which this process kills itself; None only counts.
    """

    def __init__(self, name, target=None):
        self.target = target
        self.events = []  # of each call
        self._is_open = False
        module, _, path = name.partition(":")
        owner, _, attribute = path.rpartition(".")
        owner = pkgutil.resolve_name(f"{module}:{owner}")
        function = getattr(owner, attribute)

        @functools.wraps(function)
        def counted(*args, **kwargs):
            if self._is_open:  # called by itself
                return function(*args, **kwargs)
            self.events.append(0)
            self._is_open = True
            sys.setprofile(self._see)
            try:
                return function(*args, **kwargs)
            finally:
                sys.setprofile(None)
                self._is_open = False
                if self.target is not None and self.target[0] == len(self.events) - 1:
                    kill()  # the call had fewer events than that of the undisturbed work

        setattr(owner, attribute, counted)

    def _see(self, frame, event, argument):
        self.events[-1] += 1
        if self.target is not None and self.target == (len(self.events) - 1, self.events[-1] - 1):
            kill()

    def write(self, path):
        """Write the events of each call as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.events, file)


def kill():
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def draw(random, events):
    """A moment: each call is as likely as another, and so is each event of a call.

    Args:
        random: ``random.Random``.
        events: of each call.
    """
    call = random.randrange(len(events))
    return call, random.randrange(max(1, events[call]))
