"""A slice of the attack: some mutants of each format, every finding of before, and the attack itself."""

import random

import pytest

from tests.attack import attack, large_cases, watchdog
from tests.attack.mutators import OF_BYTES, OF_LINES
from tests.attack.targets import QUICK, TARGETS, SilentLossError, Target, missing, write_case
from tests.attack.watchdog import READ, REFUSED, Watchdog, read_once

MUTANTS = 40
OF_FILES = [name for name in QUICK if name not in ("configuration", "plan")]  # read in this process, quickly


@pytest.mark.parametrize("name", OF_FILES)
def test_mutants_are_read_as_they_stand_or_refused_in_a_line(name, tmp_path):
    target = TARGETS[name]()
    samples = target.samples()
    for number in range(MUTANTS):
        rng = random.Random(f"{name}-slice-{number}")
        write_case(tmp_path, target.mutate(rng.choice(samples), rng))
        outcome = read_once(target, tmp_path)
        assert outcome.passed, f"{number}: {outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TARGETS if attack.regressions(name) or name in large_cases.CASES])
def test_findings_of_before_stay_mended(name):
    if lacking := missing(name):
        pytest.skip(lacking)
    cases = {**attack.regressions(name), **{key: make() for key, make in large_cases.CASES.get(name, {}).items()}}
    with Watchdog(name) as dog:
        outcomes = {key: dog.read(case) for key, case in cases.items()}
    assert not {key: outcome for key, outcome in outcomes.items() if not outcome.passed}


# ---- the attack itself


def test_a_seed_gives_the_same_mutants():
    for mutator in (*OF_BYTES, *OF_LINES):
        one, other = (mutator("甲 B-X\n乙 O\n\n".encode(), random.Random(5)) for _ in range(2))
        assert one == other


def _target(read):
    return Target("made up", list, None, read, (ValueError,))


def _fail(error):
    def read(folder):
        raise error

    return read


def _memory(folder):
    try:
        raise MemoryError
    except MemoryError:
        raise ValueError("is damaged") from None


@pytest.mark.parametrize(
    "read, kind",
    [
        (lambda folder: None, READ),
        (_fail(ValueError("one line")), REFUSED),
        (_fail(ValueError("two\nlines")), "message"),
        (_fail(ValueError("\x1b[31m")), "message"),
        (_fail(ValueError("x" * 5000)), "message"),
        (_fail(KeyError("x")), "traceback"),
        (_fail(SystemExit(1)), "traceback"),
        (_fail(SilentLossError("lost")), "loss"),
        (_memory, "growth"),
    ],
)
def test_what_passes_and_what_fails(read, kind, tmp_path):
    assert read_once(_target(read), tmp_path).kind == kind


def test_a_long_message_leaves_the_place_of_a_failure(tmp_path):
    outcome = read_once(_target(_fail(KeyError("x" * 5000))), tmp_path)
    assert attack.signature(outcome).startswith("traceback KeyError attack/test_attack.py:")


def test_hangs_growth_and_deaths_are_seen_and_the_attack_goes_on(monkeypatch):
    monkeypatch.setattr(watchdog, "HANG_SECONDS", 0.3)
    with Watchdog("made_up") as dog:
        kinds = [dog.read({"order": order}).kind for order in (b"hang", b"read", b"grow", b"die", b"read")]
        assert dog.case() == {"order": b"read"}
    assert kinds == ["hang", READ, "growth", "death", READ]


def test_a_finding_is_made_smaller_and_kept(tmp_path):
    with Watchdog("made_up") as dog:
        case = {"order": b"fail" + b"x" * 100, "other": b"y"}
        wanted = attack.signature(dog.read(case))
        small = attack.minimize(dog, case, wanted)
    assert small == {"order": b"fail"}
    place = attack.keep("made_up", wanted, small, tmp_path)
    assert attack.regressions("made_up", tmp_path) == {place.name: small}
    assert attack.keep("made_up", wanted, {"order": bytes(attack.LARGEST_KEPT + 1)}, tmp_path) is None


def test_the_attack_counts_what_it_finds():
    result = attack.attack("made_up", 12, seed=0)
    assert result.counts.total() == 12 and result.counts["traceback"] == 0
    assert result.row().startswith("made_up") and "12 mutants" in result.row()
