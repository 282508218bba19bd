"""A child process that reads mutants within limits of memory and time, and what becomes of each.

The kernel counts the processor time of a reading and ends the child, so that a hang inside a C library is seen as well;
memory is limited by the size of the address space. The files of a mutant are on disk before it is read.
"""

import faulthandler
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

from tests.attack.targets import Case, SilentLossError, Target, write_case

HANG_SECONDS = 2.0  # of processor time
WALL_SECONDS = 120.0  # for a reading that waits for something
GROWTH_BYTES = 1 << 30
HANGS = (signal.SIGPROF, signal.SIGALRM)  # how the kernel ends a reading that takes too long
READ, REFUSED = "read", "refused"  # passed; all else failed


class Outcome(NamedTuple):
    """What became of a mutant: the kind, and the message or the traceback."""

    kind: str
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.kind in (READ, REFUSED)


def _memory_ran_out(error):
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def read_once(target: Target, folder: Path) -> Outcome:
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
        lines = traceback.format_exc(limit=-6).splitlines()  # cut, so that the places remain
        return Outcome("growth" if _memory_ran_out(error) else "traceback", "\n".join(one[:300] for one in lines))


def _serve(target, link, parents_end, folder, log, hang_seconds):
    """In the child: read ``folder`` at each message until the other end closes."""
    parents_end.close()
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)  # also what C libraries write
    os.dup2(2, 1)
    faulthandler.enable(2)
    for hang in HANGS:
        faulthandler.register(hang, 2, chain=True)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + GROWTH_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    while True:
        try:
            link.recv()
        except EOFError:
            os._exit(0)
        os.ftruncate(2, 0)
        signal.setitimer(signal.ITIMER_PROF, hang_seconds)
        signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
        outcome = read_once(target, folder)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        link.send(outcome)


class Watchdog:
    """Reads cases of a target in a child of this process; where the child dies, another one continues."""

    def __init__(self, target: Target):
        self._place = tempfile.TemporaryDirectory(prefix=f"attack-{target.name}-")
        self.target, self.folder = target, Path(self._place.name) / "mutant"
        self._log, self._process = Path(self._place.name) / "log", None
        self.folder.mkdir()
        for sample in target.samples():  # what is imported and kept at the first use does not count
            write_case(self.folder, sample)
            target.read(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._link.close()
            self._process.join()
        self._place.cleanup()

    def read(self, case: Case) -> Outcome:
        """What becomes of a case. Its files stay in ``folder`` until the next one."""
        write_case(self.folder, case)
        if self._process is None:
            context = multiprocessing.get_context("fork")
            self._link, other_end = context.Pipe()
            arguments = (self.target, other_end, self._link, self.folder, self._log, HANG_SECONDS)
            self._process = context.Process(target=_serve, args=arguments)
            self._process.start()
            other_end.close()
        self._link.send(None)
        try:
            return self._link.recv()
        except EOFError:
            self._process.join()
            status, self._process = self._process.exitcode, None
            said = self._log.read_text(errors="replace")[-3000:].strip()
            return Outcome("hang" if -status in HANGS else "death", f"the process ended with status {status}; {said}")
