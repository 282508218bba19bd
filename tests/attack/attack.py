"""One target attacked: mutants by number until so many are read or the time is over."""

import time
from collections import Counter
from dataclasses import dataclass, field

from tests.attack import findings
from tests.attack.cases import Case
from tests.attack.watchdog import Outcome, Watchdog


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
        bad = ", ".join(
            f"{count} {kind}" for kind, count in sorted(self.counts.items()) if kind not in ("read", "refused")
        )
        total = self.counts.total()
        return (
            f"{self.name:18} {total:7} mutants {self.counts['read']:7} read {self.counts['refused']:7} refused "
            f"{self.seconds:6.0f} s   {bad or 'no failure'}"
        )


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
            if findings.passed(outcome):
                continue
            wanted = findings.signature(outcome)
            count, *first_seen = result.failures.get(wanted, (0, order, outcome, dog.case()))
            result.failures[wanted] = (count + 1, *first_seen)
    result.seconds = time.monotonic() - begin
    return result


def reduce(name: str, failures: dict) -> dict[str, Case]:
    """Smaller cases by signature, for those that fail again when they are read alone."""
    small = {}
    with Watchdog(name) as dog:
        for wanted, (_, _, _, case) in failures.items():
            if findings.signature(dog.read(case)) == wanted:
                case = findings.minimize(dog, case, wanted)
            small[wanted] = case
    return small
