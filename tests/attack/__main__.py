"""Attack the readers of this project with mutants of what a stranger may send.

    python -m tests.attack                                       10,000 mutants of each target
    python -m tests.attack --minutes 5 --seed 3 --format bio     as many as five minutes allow
    python -m tests.attack --list

A mutant passes when it is read as it is, or refused in one line. A traceback, more than two seconds of processor
time, more than 1 GB of memory, the death of the process, a message of several lines or with control characters, and
text or entities that get lost are failures: each is told once, made smaller and written to --findings. Exit status 1 if
there were any.
"""

import argparse
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack import regressions
from tests.attack.targets import NAMES, Case, missing
from tests.attack.watchdog import Outcome, Watchdog

MINIMIZE_SECONDS = 15


@dataclass
class Result:
    """What became of the mutants of a target.

    Attributes:
        counts: by the kind of outcome.
        failures: by signature: how many, the first one's order and outcome, and its case.
    """

    name: str
    counts: Counter = field(default_factory=Counter)
    failures: dict[str, tuple[int, str, Outcome, Case]] = field(default_factory=dict)
    seconds: float = 0.0

    def row(self) -> str:
        counts = dict(self.counts)
        read, refused = counts.pop("read", 0), counts.pop("refused", 0)
        bad = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no failure"
        total = self.counts.total()
        return f"{self.name:18} {total:7} mutants {read:7} read {refused:7} refused {self.seconds:6.0f} s   {bad}"


def attack(name: str, mutants: int, seed: int, seconds: float = float("inf"), first: int = 0) -> Result:
    """Read the mutants ``first`` to ``first + mutants`` of a seed, as far as the time suffices. The mutant of a seed
    and a number is always the same."""
    result = Result(name)
    begin = time.monotonic()
    with Watchdog(name) as dog:
        for number in range(first, first + mutants):
            if time.monotonic() - begin > seconds:
                break
            order = f"{name}-{seed}-{number}"
            outcome = dog.read(order)
            result.counts[outcome.kind] += 1
            if not outcome.passed:
                wanted = signature(outcome)
                count, *first_seen = result.failures.get(wanted, (0, order, outcome, dog.case()))
                result.failures[wanted] = (count + 1, *first_seen)
    result.seconds = time.monotonic() - begin
    return result


def signature(outcome: Outcome) -> str:
    """The same for failures of one cause: kind, exception and place in the source."""
    places = re.findall(r'File "([^"]+)", line (\d+)', outcome.detail)
    if outcome.kind == "hang":
        place = next((p for p in places if "tests/attack" not in p[0]), ("", ""))  # faulthandler: the innermost first
        return f"hang {'/'.join(Path(place[0]).parts[-2:])}"
    if places:
        last = outcome.detail.strip().splitlines()[-1].partition(":")[0]
        return f"{outcome.kind} {last} {'/'.join(Path(places[-1][0]).parts[-2:])}:{places[-1][1]}"
    return f"{outcome.kind} {re.sub(r'[0-9]+', '0', outcome.detail)[:60]}"


def minimize(dog: Watchdog, case: Case, wanted: str) -> Case:
    """A smaller case that fails in the same way, if the case fails alone: files left out, then parts of files, halves
    first."""
    end = time.monotonic() + MINIMIZE_SECONDS

    def fails(smaller):
        return time.monotonic() < end and signature(dog.read(smaller)) == wanted

    if not fails(case):
        return case
    for name in sorted(case):
        smaller = {other: content for other, content in case.items() if other != name}
        if smaller and fails(smaller):
            case = smaller
    for name in sorted(case, key=lambda name: len(case[name])):
        size = len(case[name])
        while size and time.monotonic() < end:
            start = 0
            while start < len(case[name]) and time.monotonic() < end:
                smaller = {**case, name: case[name][:start] + case[name][start + size :]}
                if fails(smaller):
                    case = smaller
                else:
                    start += size
            size //= 2
    return case


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__.splitlines()[0])
    parser.add_argument("--format", action="append", choices=NAMES, help="a target; may be given again")
    parser.add_argument("--mutants", type=int, help="of each target; default 10,000, or no bound with --minutes")
    parser.add_argument("--minutes", type=float, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, to go on or to repeat one")
    parser.add_argument("--findings", type=Path, default=regressions.FILE, help="YAML file of what failed")
    parser.add_argument("--list", action="store_true", help="name the targets")
    options = parser.parse_args(argv)
    names = options.format or NAMES
    if options.list:
        print("\n".join(names))
        return 0
    mutants = options.mutants or (10_000 if options.minutes is None else 10**9)
    seconds = float("inf") if options.minutes is None else options.minutes * 60 / len(names)
    failed = False
    for name in names:
        if lacking := missing(name):
            print(f"{name:18} SKIPPED: {lacking}")
            continue
        result = attack(name, mutants, options.seed, seconds, options.first)
        print(result.row(), flush=True)
        with Watchdog(name) as dog:
            for wanted, (count, order, outcome, case) in result.failures.items():
                failed = True
                kept = regressions.keep(name, order, minimize(dog, case, wanted), options.findings)
                print(f"  {count} x {wanted}; first: mutant {order}{'' if kept else ', too large to keep'}")
                print("    " + outcome.detail.strip()[-800:].replace("\n", "\n    "), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
