"""What is attacked, and a child process that reads mutants within limits of memory and time.

A case is a dict from names of files to their bytes: one file, or those of a folder; it is on disk before it is
read. The kernel counts the processor time of a reading and ends the child, so that a hang inside a C library is seen as
well; memory is limited by the size of the address space.
"""

import faulthandler
import json
import multiprocessing
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from paddle_rope.machine import import_paddle, prepare_process

prepare_process()
import_paddle()  # once for all children

Case = dict[str, bytes]
HANG_SECONDS = 10.0  # of processor time; the longest reading takes 2 to 4, depending on the machine
WALL_SECONDS = 120.0  # for a reading that waits for something
GROWTH_BYTES = 1 << 30
HANGS = (signal.SIGPROF, signal.SIGALRM)  # how the kernel ends a reading that takes too long
READ, REFUSED = "read", "refused"  # passed; all else failed


class SilentLossError(AssertionError):
    """A file was read without an error, and not as it is."""


@dataclass(frozen=True)
class Target:
    """Something that reads what a stranger may have written.

    Attributes:
        name: also of its regressions.
        samples: gives cases that can be read, from which mutants are made. Called once a process.
        mutate: from a case and a ``random.Random`` to a mutant, another dict.
        read: of the folder with the case. It returns, raises one of ``refusals``, or has failed.
        refusals: exceptions that say in one line what is wrong.
        complete: adds to a case of a few files the others of the sample: regressions hold what differs from it.
    """

    name: str
    samples: Callable[[], list[Case]]
    mutate: Callable
    read: Callable[[Path], None]
    refusals: tuple
    complete: Callable[[Case], Case] = dict


def target_of_folder(name, sample, mutate, read, *refusals, **added) -> Target:
    """A target whose regressions hold the files that differ from its sample; ``added`` are in those as well."""
    return Target(name, lambda: [sample()], mutate, read, refusals, lambda case: {**sample(), **added, **case})


def write_case(folder: Path, case: Case) -> None:
    """Write the files of a case into a folder, in which no others are left."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in case.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_case(folder: Path) -> Case:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def json_bytes(value) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


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
    """Read the case in ``folder``; the process has the limits."""
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
