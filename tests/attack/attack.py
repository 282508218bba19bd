"""One target attacked, and what failed: distinguished by place, made small, and kept as a regression."""

import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.targets import Case, read_case, write_case
from tests.attack.watchdog import Outcome, Watchdog

REGRESSIONS = Path(__file__).parent / "regressions"
LARGEST_KEPT = 100_000  # bytes of a regression
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


def keep(name: str, wanted: str, case: Case, folder: Path = REGRESSIONS) -> Path | None:
    """Write a case as a regression of the target ``name``; None if it is too large for that."""
    if sum(map(len, case.values())) > LARGEST_KEPT:
        return None
    words = re.sub(r"[^A-Za-z0-9]+", "_", wanted).strip("_").lower()[:50].strip("_")
    digest = hashlib.sha256(repr(sorted(case.items())).encode()).hexdigest()[:6]
    place = folder / name / f"{words}_{digest}"
    place.mkdir(parents=True, exist_ok=True)
    write_case(place, case)
    return place


def regressions(name: str, folder: Path = REGRESSIONS) -> dict[str, Case]:
    """The regressions of a target by their names."""
    return {path.name: read_case(path) for path in sorted((folder / name).glob("*")) if path.is_dir()}
