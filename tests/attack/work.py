"""Processor time and bytes of the answer for each byte that comes in, at a size and at two and four times it.

    python -m tests.attack.work                 a table of all doors
    python -m tests.attack.work request gzip    of the doors with one of these words in their names

At a door whose work or answer is more than linear, four times the bytes cost more than ``MOST_GROWTH`` times as much
each. Exit status 1 if there is one.
"""

import gc
import logging
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from tests.attack.request_doors import REQUESTS
from tests.attack.text_doors import CONFIGURATIONS, IN_MEMORY, LABELED, UNLABELED, Door

KINDS = {"request": REQUESTS, "labeled": LABELED, "unlabeled": UNLABELED, "configuration": CONFIGURATIONS}
KINDS |= {"in memory": IN_MEMORY}
DOORS = {f"{kind}: {name}": door for kind, doors in KINDS.items() for name, door in doors.items()}
SIZES = (1, 2, 4)  # times the size of a door
MOST_GROWTH = 2.5  # of the cost of a byte from the smallest input to the largest; quadratic work has 4
LEAST_SECONDS, LEAST_BYTES = 0.1, 100_000  # of the largest input, below which growth does not matter
TRIES = 3  # a machine with other work delays one of them


class Cost(NamedTuple):
    """What an input costs: processor time of this process, all threads together, and the size of its answer."""

    sent: int  # bytes
    seconds: float
    answered: int  # bytes


def measured(door: Door, n: int) -> Cost:
    """The cost of an input of a size."""
    sent, receive = door(n)
    begin = time.process_time()
    answered = receive()
    return Cost(sent, time.process_time() - begin, answered)


def faults(costs: Iterable[Cost]) -> list[str]:
    """What is more than linear in the costs of inputs of growing sizes, with the growth of its cost per byte."""
    first, *_, last = costs
    found = []
    for what, least in (("seconds", LEAST_SECONDS), ("answered", LEAST_BYTES)):
        before, after = (getattr(one, what) / one.sent for one in (first, last))
        if getattr(last, what) > least and after > MOST_GROWTH * before:
            found.append(f"{what} per byte grow {after / before:.1f} times")
    return found


def tried(door: Door, n: int) -> tuple[list[Cost], list[str]]:
    """The costs of ``SIZES`` and their faults; where there are faults, the lowest costs of ``TRIES``."""
    measured(door, 1)  # what is imported and kept at the first use does not count
    gc.freeze()  # nor does looking through it for garbage
    costs = [measured(door, size * n) for size in SIZES]
    for _ in range(TRIES - 1):
        if not faults(costs):
            break
        costs = [min(cost, measured(door, size * n)) for cost, size in zip(costs, SIZES)]
    return costs, faults(costs)


def main(words: list[str]) -> int:
    """Print the table; exit status 1 if a door is more than linear."""
    logging.disable(logging.WARNING)  # what readers note
    print(f"{'bytes':>10} {'seconds':>8} {'ns/byte at 1, 2, 4 times':>26} {'answer/byte':>23}  door")
    failed = False
    for name, (door, n) in DOORS.items():
        if words and not any(word in name for word in words):
            continue
        costs, found = tried(door, n)
        nanoseconds, answers = (
            " ".join(f"{getattr(one, what) * scale / one.sent:{width}}" for one in costs)
            for what, scale, width in (("seconds", 1e9, "8.0f"), ("answered", 1, "7.2f"))
        )
        line = f"{costs[-1].sent:10,} {costs[-1].seconds:8.3f} {nanoseconds} {answers}  {name}"
        print(line, *found, sep="  ", flush=True)
        failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
