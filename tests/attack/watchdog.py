"""A process that makes and reads mutants within limits of memory and time, and what becomes of it.

The processor time of one reading is watched from outside, so that a hang inside a library of C is seen as well; memory
is limited by the size of the address space. The files of the mutant are on disk before it is read: when the process
dies, they are there.
"""

import collections
import contextlib
import faulthandler
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
import traceback
from pathlib import Path

from tests.attack.cases import Case, SilentLossError, check_line, read_case, write_case

HANG_SECONDS = 2.0  # of processor time
WALL_SECONDS = 120.0  # of a reading that waits for something, or of a machine that has other work
GROWTH_BYTES = 1 << 30
OPEN_SECONDS = 300
POLL_SECONDS = 0.2
WHERE = signal.SIGUSR1  # a reader that gets it writes where it is
READ, REFUSED = "read", "refused"  # passed; all else failed
Outcome = collections.namedtuple("Outcome", "kind detail")


def _limit_memory():
    """At most ``GROWTH_BYTES`` more address space than now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + GROWTH_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _processor_seconds(process):
    """Processor time that a process has used; 0 if there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_ran_out(error):
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _traceback():
    """The innermost calls of the error that is handled; what stands in long lines is cut, so that places are left."""
    return "\n".join(line[:300] for line in traceback.format_exc(limit=-6).splitlines())[-3000:]


def read_once(target, folder: Path) -> Outcome:
    """Read the case in ``folder``; the limits are those of the process."""
    try:
        target.read(folder)
        return Outcome(READ, "")
    except target.refusals as error:
        if _memory_ran_out(error):
            return Outcome("growth", f"memory ran out: {error}"[:500])
        try:
            check_line(error)
        except SilentLossError as problem:
            return Outcome("message", str(problem))
        return Outcome(REFUSED, str(error))
    except SilentLossError as error:
        return Outcome("loss", str(error)[:1000])
    except MemoryError:
        return Outcome("growth", _traceback())
    except BaseException as error:
        kind = "growth" if _memory_ran_out(error) else "traceback"
        return Outcome(kind, _traceback())


def _work(name, link, folder, log):
    """What the process does: it opens the target once, and a child of it reads; where that dies, another one does."""
    from tests.attack.targets import TARGETS

    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)  # also what libraries of C write
    os.dup2(2, 1)
    target = TARGETS[name]()
    samples = target.samples()
    for sample in samples:  # what is imported and kept at the first use does not count
        write_case(folder, sample)
        target.read(folder)
    link.send(Outcome("open", ""))
    while True:
        child = os.fork()
        if child == 0:
            _serve(target, samples, link, folder)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        link.send(Outcome("death", f"the process ended with status {status}"))


def _serve(target, samples, link, folder):
    """Read what is ordered, without an end."""
    try:
        faulthandler.register(WHERE)
        _limit_memory()
        while True:
            order = link.recv()
            if isinstance(order, dict):
                write_case(folder, target.complete(order))
            else:
                rng = random.Random(order)
                write_case(folder, target.mutate(rng.choice(samples), rng))
            os.ftruncate(2, 0)
            link.send(Outcome("begun", os.getpid()))
            link.send(read_once(target, folder))
    except (EOFError, KeyboardInterrupt):
        os._exit(0)
    except BaseException:  # of a mutator
        traceback.print_exc()
        os._exit(1)


class Watchdog:
    """A target in processes of its own: one that opens it, and its child that reads and may die."""

    def __init__(self, name: str):
        self.name = name
        self._place = tempfile.TemporaryDirectory(prefix=f"attack-{name}-")
        self.folder = Path(self._place.name) / "mutant"
        self.folder.mkdir()
        self._log = Path(self._place.name) / "log"
        self._process = None
        self._reader = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._link.close()
        if self._reader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._reader, signal.SIGKILL)
        self._place.cleanup()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._link, other_end = context.Pipe()
        self._process = context.Process(target=_work, args=(self.name, other_end, self.folder, str(self._log)))
        self._process.start()
        other_end.close()
        if not self._link.poll(OPEN_SECONDS) or self._received().kind != "open":
            raise RuntimeError(f"{self.name}: the samples cannot be read: {self._tail()}")

    def _received(self):
        try:
            return self._link.recv()
        except EOFError:
            raise RuntimeError(f"{self.name}: the process that opens it has ended: {self._tail()}") from None

    def _tail(self):
        return self._log.read_text(errors="replace")[-3000:].strip() if self._log.exists() else ""

    def _receive(self):
        """The outcome of the reading that has begun. A reader that takes too long is asked where it is, and killed."""
        begin, used = time.monotonic(), _processor_seconds(self._reader)
        too_long = ""
        while not self._link.poll(POLL_SECONDS) and not too_long:
            if _processor_seconds(self._reader) - used > HANG_SECONDS:
                too_long = f"more than {HANG_SECONDS:g} s of processor time"
            elif time.monotonic() - begin > WALL_SECONDS:
                too_long = f"no end within {WALL_SECONDS:g} s"
        if too_long:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._reader, WHERE)
                time.sleep(POLL_SECONDS)
                os.kill(self._reader, signal.SIGKILL)
        outcome = self._received()
        if too_long and outcome.kind != "death":  # it came to its end at last, and was killed then
            self._received()
        if too_long:
            return Outcome("hang", f"{too_long}; {self._tail()}")
        return Outcome("death", f"{outcome.detail}; {self._tail()}") if outcome.kind == "death" else outcome

    def read(self, order: str | Case) -> Outcome:
        """Read the mutant of a seed, or a case. Its files stay in ``folder`` until the next one."""
        if self._process is None:
            self._start()
        self._link.send(order)
        begun = self._received()
        if begun.kind != "begun":
            raise RuntimeError(f"{self.name}: no mutant could be made of {str(order)[:200]}: {self._tail()}")
        self._reader = begun.detail
        return self._receive()

    def case(self) -> Case:
        """The files of the last mutant."""
        return read_case(self.folder)
