"""What is attacked: a target, its samples, and how it is read.

A case is a dict from names of files to their bytes: one file, or those of a folder.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Case = dict[str, bytes]


class SilentLossError(AssertionError):
    """A file was read without an error, and not as it stands."""


@dataclass(frozen=True)
class Target:
    """Something that reads what a stranger may have written.

    Attributes:
        name: also of its folder of regressions.
        samples: gives cases that can be read, from which mutants are made. Called once a process.
        mutate: from a case and a ``random.Random`` to a mutant, another dict.
        read: of the folder in which the case stands. It returns, raises one of ``refusals``, or has failed.
        refusals: exceptions that say in one line what is wrong.
        complete: what a case of a few files needs to stand in a folder: regressions hold what differs from the sample.
    """

    name: str
    samples: Callable[[], list[Case]]
    mutate: Callable
    read: Callable[[Path], None]
    refusals: tuple = field(default=())
    complete: Callable[[Case], Case] = dict


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


def check_line(error: Exception) -> None:
    """Raise SilentLossError unless the message of a refusal is one line of a few hundred characters that a terminal
    shows as it is."""
    message = str(error)
    problem = None
    if not message or "\n" in message:
        problem = "is not one line"
    elif len(message) > 1500:
        problem = f"has {len(message)} characters"
    elif any(ord(character) < 32 or 127 <= ord(character) < 160 for character in message):
        problem = "holds control characters"
    if problem:
        raise SilentLossError(f"the message {problem}: {message[:300]!r}")
