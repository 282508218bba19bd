"""What failed: told apart by where it failed, made small, and kept as a regression."""

import hashlib
import re
import time
from pathlib import Path

from tests.attack.cases import Case, read_case, write_case
from tests.attack.watchdog import READ, REFUSED, Outcome, Watchdog

REGRESSIONS = Path(__file__).parent / "regressions"
LARGEST_KEPT = 100_000  # bytes of a regression
MINIMIZE_SECONDS = 15


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


def passed(outcome: Outcome) -> bool:
    return outcome.kind in (READ, REFUSED)


def minimize(dog: Watchdog, case: Case, wanted: str) -> Case:
    """A smaller case that fails in the same way: files left out, then parts of files, halves first."""
    end = time.monotonic() + MINIMIZE_SECONDS

    def fails(smaller):
        return time.monotonic() < end and signature(dog.read(smaller)) == wanted

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
