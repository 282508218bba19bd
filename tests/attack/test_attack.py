"""A slice of the attack: some mutants of each format, every finding of before, and the attack itself."""

import os
import random

import pytest

from tests.attack import regressions, watchdog
from tests.attack.__main__ import OF_FILES, TARGETS, attack, cause, missing
from tests.attack.targets import SilentLossError, Target, write_case
from tests.attack.watchdog import READ, REFUSED, Watchdog, read_once

MUTANTS = 40


def _obey(folder):
    order = (folder / "order").read_bytes()
    if order == b"hang":
        while True:
            pass
    if order == b"grow":
        bytearray(2 << 30)
    if order == b"die":
        os.abort()
    if order == b"fail":
        raise KeyError("x")


def _order(case, rng):
    return {"order": rng.choice((b"read", b"fail"))}


MADE_UP = Target("made_up", lambda: [{"order": b"read"}], _order, _obey, (ValueError,))


@pytest.mark.parametrize("name", OF_FILES)
def test_mutants_are_read_as_they_stand_or_refused_in_a_line(name, tmp_path):
    target = OF_FILES[name]
    samples = target.samples()
    for number in range(MUTANTS):
        rng = random.Random(f"{name}-slice-{number}")
        write_case(tmp_path, target.mutate(rng.choice(samples), rng))
        outcome = read_once(target, tmp_path)
        assert outcome.passed, f"{number}: {outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TARGETS if name in {**regressions.KEPT, **regressions.MADE}])
def test_findings_of_before_stay_mended(name):
    if lacking := missing(name):
        pytest.skip(lacking)
    with Watchdog(TARGETS[name]) as dog:
        outcomes = {key: dog.read(TARGETS[name].complete(case)) for key, case in regressions.of_target(name).items()}
    assert not {key: outcome for key, outcome in outcomes.items() if not outcome.passed}


# ---- the attack itself


def _caused(error, cause):
    error.__cause__ = cause
    return error


def _raise(error):
    if error is not None:
        raise error


@pytest.mark.parametrize(
    "error, kind",
    [
        (None, READ),
        (ValueError("one line"), REFUSED),
        (ValueError(""), "message"),
        (ValueError("one\nother"), "message"),
        (ValueError("a \x1b[31m"), "message"),
        (ValueError("x" * 2000), "message"),
        (KeyError("x" * 5000), "traceback"),
        (SystemExit(1), "traceback"),
        (SilentLossError("lost"), "loss"),
        (_caused(ValueError("one line"), MemoryError()), "growth"),
    ],
)
def test_what_passes_and_what_fails(error, kind, tmp_path):
    outcome = read_once(Target("made up", list, None, lambda folder: _raise(error), (ValueError,)), tmp_path)
    assert outcome.kind == kind and ("test_attack.py" in cause(outcome)) == (kind == "traceback")


def test_hangs_growth_and_deaths_are_seen_and_the_attack_goes_on(monkeypatch):
    monkeypatch.setattr(watchdog, "HANG_SECONDS", 0.3)
    orders = (b"hang", b"read", b"grow", b"die", b"read")
    with Watchdog(MADE_UP) as dog:
        assert [dog.read({"order": order}).kind for order in orders] == ["hang", READ, "growth", "death", READ]


def test_the_attack_counts_what_it_finds_and_keeps_it(tmp_path):
    counts, failures = attack(MADE_UP, 12, seed=0, findings=tmp_path)
    assert counts.total() == 12 and counts["traceback"] > 1 and len(failures) == 1
    (kept,) = tmp_path.iterdir()
    assert (kept / "order").read_bytes() == b"fail" and kept.name in next(iter(failures.values()))
