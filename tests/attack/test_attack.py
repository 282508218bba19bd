"""A slice of the attack: some mutants of each format, every finding of before, and the attack itself."""

import random

import pytest

from tests.attack import regressions, watchdog
from tests.attack.__main__ import attack, minimize, signature
from tests.attack.mutators import OF_BYTES, OF_LINES
from tests.attack.targets import NAMES, OF_FILES, SilentLossError, Target, get_target, missing, write_case
from tests.attack.watchdog import READ, REFUSED, Watchdog, read_once

MUTANTS = 40


@pytest.mark.parametrize("name", OF_FILES)
def test_mutants_are_read_as_they_stand_or_refused_in_a_line(name, tmp_path):
    target = get_target(name)
    samples = target.samples()
    for number in range(MUTANTS):
        rng = random.Random(f"{name}-slice-{number}")
        write_case(tmp_path, target.mutate(rng.choice(samples), rng))
        outcome = read_once(target, tmp_path)
        assert outcome.passed, f"{number}: {outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name in {**regressions.read(), **regressions.MADE}])
def test_findings_of_before_stay_mended(name):
    if lacking := missing(name):
        pytest.skip(lacking)
    with Watchdog(name) as dog:
        outcomes = {key: dog.read(case) for key, case in regressions.of_target(name).items()}
    assert not {key: outcome for key, outcome in outcomes.items() if not outcome.passed}


# ---- the attack itself


def test_a_seed_gives_the_same_mutants():
    for mutator in (*OF_BYTES, *OF_LINES):
        one, other = (mutator("甲 B-X\n乙 O\n\n".encode(), random.Random(5)) for _ in range(2))
        assert one == other


def _target(error):
    def read(folder):
        if error:
            raise error

    return Target("made up", list, None, read, (ValueError,))


def _caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error, kind",
    [
        (None, READ),
        (ValueError("one line"), REFUSED),
        (ValueError(""), "message"),
        (ValueError("one\nother"), "message"),
        (ValueError("a \x1b[31m"), "message"),
        (ValueError("x" * 2000), "message"),
        (KeyError("x"), "traceback"),
        (SystemExit(1), "traceback"),
        (SilentLossError("lost"), "loss"),
        (_caused(ValueError("one line"), MemoryError()), "growth"),
    ],
)
def test_what_passes_and_what_fails(error, kind, tmp_path):
    assert read_once(_target(error), tmp_path).kind == kind


def test_a_long_message_leaves_the_place_of_a_failure(tmp_path):
    outcome = read_once(_target(KeyError("x" * 5000)), tmp_path)
    assert signature(outcome).startswith("traceback KeyError attack/test_attack.py:")


def test_hangs_growth_and_deaths_are_seen_and_the_attack_goes_on(monkeypatch):
    monkeypatch.setattr(watchdog, "HANG_SECONDS", 0.3)
    with Watchdog("made_up") as dog:
        kinds = [dog.read({"order": order}).kind for order in (b"hang", b"read", b"grow", b"die", b"read")]
        assert dog.case() == {"order": b"read"}
    assert kinds == ["hang", READ, "growth", "death", READ]


def test_a_finding_is_made_smaller_and_kept(tmp_path):
    with Watchdog("made_up") as dog:
        case = {"order": b"fail" + b"x" * 100, "other": b"\xff"}
        small = minimize(dog, case, signature(dog.read(case)))
    assert small == {"order": b"fail"}
    file = tmp_path / "findings.yaml"
    assert regressions.keep("made_up", "first", case, file) and regressions.keep("made_up", "second", small, file)
    assert regressions.of_target("made_up", file) == {"first": case, "second": small}
    assert not regressions.keep("made_up", "third", {"order": bytes(regressions.LARGEST_KEPT + 1)}, file)


def test_the_attack_counts_what_it_finds():
    result = attack("made_up", 12, seed=0)
    assert result.counts.total() == 12 and result.counts["traceback"] == 0
    assert result.row().startswith("made_up") and "12 mutants" in result.row()
