"""Moments of a process: the events that Python's profiler sees while a function works, and death at one of them."""

import functools
import os
import pkgutil
import signal
import sys


class Zone:
    """Calls of the function ``name``, "module:Class.method", each with its profiler events: entries and ends of Python
    and C functions. This process kills itself at ``target``, (call, event) from 0; None only counts."""

    working = []  # zones whose function is at work, one within another

    def __init__(self, name, target=None):
        self.target = target
        self.events = []  # of each call
        module, _, path = name.partition(":")
        owner, _, attribute = path.rpartition(".")
        owner = pkgutil.resolve_name(f"{module}:{owner}")
        function = getattr(owner, attribute)

        @functools.wraps(function)
        def counted(*args, **kwargs):
            if self in self.working:  # called by itself
                return function(*args, **kwargs)
            self.events.append(0)
            self.working.append(self)
            sys.setprofile(see)
            try:
                return function(*args, **kwargs)
            finally:
                self.working.remove(self)
                sys.setprofile(see if self.working else None)
                if self.target is not None and self.target[0] == len(self.events) - 1:
                    kill()  # the call had fewer events than that of the undisturbed work

        setattr(owner, attribute, counted)


def see(frame, event, argument):
    """Count an event; as ``sys.setprofile`` calls it."""
    for zone in Zone.working:
        zone.events[-1] += 1
        if zone.target == (len(zone.events) - 1, zone.events[-1] - 1):
            kill()


def kill():
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def draw(random, events):
    """A moment: each call is as likely as another, and so is each of its ``events``."""
    call = random.randrange(len(events))
    return call, random.randrange(max(1, events[call]))
