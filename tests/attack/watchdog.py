"""A process that makes and reads mutants within limits of memory and time, and what becomes of each.

The kernel counts the processor time of a reading and ends the process, so that a hang inside a C library is seen as
well; memory is limited by the size of the address space. The files of a mutant are on disk before it is read, so they
are there when the process dies.
"""

import contextlib
import faulthandler
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

from tests.attack.targets import Case, SilentLossError, get_target, read_case, write_case

HANG_SECONDS = 2.0  # of processor time
WALL_SECONDS = 120.0  # for a reading that waits for something
GROWTH_BYTES = 1 << 30
OPEN_SECONDS = 300
HANGS = (signal.SIGPROF, signal.SIGALRM)  # how the kernel ends a reading that takes too long
READ, REFUSED = "read", "refused"  # passed; all else failed


class Outcome(NamedTuple):
    """What became of a mutant: the kind, and the message or the traceback."""

    kind: str
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.kind in (READ, REFUSED)


def _limit_memory():
    """At most ``GROWTH_BYTES`` more address space than now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + GROWTH_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _limit_time(processor_seconds, wall_seconds):
    signal.setitimer(signal.ITIMER_PROF, processor_seconds)
    signal.setitimer(signal.ITIMER_REAL, wall_seconds)


def _memory_ran_out(error):
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _traceback():
    """The innermost calls of the current error; long lines are cut, so that the places remain."""
    return "\n".join(line[:300] for line in traceback.format_exc(limit=-6).splitlines())[-3000:]


def read_once(target, folder: Path) -> Outcome:
    """Read the case in ``folder``; the limits are those of the process."""
    try:
        target.read(folder)
        return Outcome(READ)
    except target.refusals as error:
        if _memory_ran_out(error):
            return Outcome("growth", f"memory ran out: {error}"[:500])
        message = str(error)
        if not message or len(message) > 1500 or any(ord(one) < 32 or 127 <= ord(one) < 160 for one in message):
            return Outcome("message", f"it is not one short line of printable characters: {message[:300]!r}")
        return Outcome(REFUSED, message)
    except SilentLossError as error:
        return Outcome("loss", str(error)[:1000])
    except BaseException as error:
        return Outcome("growth" if _memory_ran_out(error) else "traceback", _traceback())


def _work(name, link, folder, log, hang_seconds):
    """Open the target once; a child reads, and where it dies, another one continues."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)  # also what C libraries write
    os.dup2(2, 1)
    target = get_target(name)
    samples = target.samples()
    for sample in samples:  # what is imported and kept at the first use does not count
        write_case(folder, sample)
        target.read(folder)
    link.send(Outcome("open"))
    while True:
        child = os.fork()
        if child == 0:
            _serve(target, samples, link, folder, hang_seconds)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        said = Path(log).read_text(errors="replace")[-3000:].strip()
        link.send(Outcome("hang" if -status in HANGS else "death", f"the process ended with status {status}; {said}"))


def _serve(target, samples, link, folder, hang_seconds):
    """Read what is ordered until the other end closes."""
    try:
        for hang in HANGS:
            faulthandler.register(hang, chain=True)
        _limit_memory()
        while True:
            order = link.recv()
            os.ftruncate(2, 0)
            try:
                if isinstance(order, dict):
                    write_case(folder, target.complete(order))
                else:
                    rng = random.Random(order)
                    write_case(folder, target.mutate(rng.choice(samples), rng))
            except Exception:
                link.send(Outcome("unmade", _traceback()))
                continue
            _limit_time(hang_seconds, WALL_SECONDS)
            outcome = read_once(target, folder)
            _limit_time(0, 0)
            link.send(outcome)
    except BaseException as error:
        os._exit(0 if isinstance(error, (EOFError, KeyboardInterrupt)) else 1)


class Watchdog:
    """A target in two processes: one opens it, and its child reads and may die."""

    def __init__(self, name: str):
        self.name = name
        self._place = tempfile.TemporaryDirectory(prefix=f"attack-{name}-")
        self.folder = Path(self._place.name) / "mutant"
        self.folder.mkdir()
        self._log = Path(self._place.name) / "log"
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._link.close()  # ends the reader, and with it the other process
            self._process.join()
        self._place.cleanup()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._link, other_end = context.Pipe()
        arguments = (self.name, other_end, self.folder, self._log, HANG_SECONDS)
        self._process = context.Process(target=_work, args=arguments)
        self._process.start()
        other_end.close()
        if not self._link.poll(OPEN_SECONDS):
            self._process.kill()
            raise RuntimeError(f"{self.name}: the samples are not read in {OPEN_SECONDS} s")
        self._receive()

    def _receive(self):
        with contextlib.suppress(EOFError):
            return self._link.recv()
        said = self._log.read_text(errors="replace")[-3000:].strip() if self._log.exists() else ""
        raise RuntimeError(f"{self.name}: the samples cannot be read: {said}")

    def read(self, order: str | Case) -> Outcome:
        """Read the mutant of a seed, or a case. Its files stay in ``folder`` until the next one."""
        if self._process is None:
            self._start()
        self._link.send(order)
        outcome = self._receive()
        if outcome.kind == "unmade":
            raise RuntimeError(f"{self.name}: no mutant could be made of {str(order)[:200]}: {outcome.detail}")
        return outcome

    def case(self) -> Case:
        """The files of the last mutant."""
        return read_case(self.folder)
