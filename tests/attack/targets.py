"""What is attacked: a target, its samples, how it is read.

A case is a dict from names of files to their bytes: one file, or those of a folder.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paddle_rope.machine import import_paddle, prepare_process

prepare_process()
import_paddle()  # once for all children

Case = dict[str, bytes]


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


def write_case(folder: Path, case: Case) -> None:
    """Write the files of a case into a folder, in which no others are left."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, content in case.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_case(folder: Path) -> Case:
    """The files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def json_bytes(value) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")
