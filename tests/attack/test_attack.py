"""A slice of the attack: some mutants of each format, every finding of before, and the attack itself; work and answers
are linear in the bytes that come in, at each door, and what is not linear is noticed."""

import itertools
import os
import random
from pathlib import Path

import pytest
import yaml

from tests.attack import watchdog
from tests.attack.__main__ import OF_FILES, TARGETS, attack, cause, missing
from tests.attack.text_doors import Sent
from tests.attack.watchdog import READ, REFUSED, SilentLossError, Target, Watchdog, read_once, write_case
from tests.attack.work import KINDS, tried
from tests.tasks.serving.conftest import skip_without_extra

MUTANTS = 40


@pytest.mark.parametrize("name", OF_FILES)
def test_mutants_are_read_as_they_stand_or_refused_in_a_line(name, tmp_path):
    target = OF_FILES[name]
    samples = target.samples()
    for number in range(MUTANTS):
        rng = random.Random(f"{name}-slice-{number}")
        write_case(tmp_path, target.mutate(rng.choice(samples), rng))
        outcome = read_once(target, tmp_path)
        assert outcome.passed, f"{number}: {outcome}"


# ---- findings of before
def repeated_keys():
    """An object with 30,000 keys of which two are equal: once looked for in quadratic time."""
    keys = ", ".join(f'"{key}": {{}}' for key in (*range(30_000), 29_999))
    return {"mutant": f'{{"text": "ab", "label": {{{keys}}}}}\n'}


def graph_that_cannot_be_computed():
    """A graph that multiplies texts of any length with seven numbers."""
    from onnx import parser

    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 11]>
        graph (int64[n, seq] input_ids, bool[n, seq] attention_mask, bool[n, seq] token_mask) => (float[] logits)
        <float[7] seven = {1, 1, 1, 1, 1, 1, 1}> {
            numbers = Cast <to = 1> (input_ids)
            logits = Mul(numbers, seven)
        }""")
    return {"model.onnx": model.SerializeToString()}


# target -> name -> file -> its content, or a list of pieces [content, times]
FINDINGS = yaml.safe_load(Path(__file__).with_name("regressions.yaml").read_text(encoding="utf-8"))
for name in ("cluener", "jsonl", "stream"):
    FINDINGS.setdefault(name, {})["repeated keys"] = repeated_keys
FINDINGS["exported_onnx"]["a graph that cannot be computed"] = graph_that_cannot_be_computed


def case_of(finding):
    files = finding() if callable(finding) else finding
    pieces = {name: content if isinstance(content, list) else [[content, 1]] for name, content in files.items()}
    return {
        name: b"".join((one.encode() if isinstance(one, str) else one) * times for one, times in of_file)
        for name, of_file in pieces.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TARGETS if name in FINDINGS])
def test_findings_of_before_stay_mended(name):
    if lacking := missing(name):
        pytest.skip(lacking)
    with Watchdog(TARGETS[name]) as dog:
        outcomes = {key: dog.read(TARGETS[name].complete(case_of(one))) for key, one in FINDINGS[name].items()}
    assert not {key: outcome for key, outcome in outcomes.items() if not outcome.passed}


# ---- the attack itself
def fail(error, cause=None):
    raise error from cause


ORDERS = {  # what a reading does: (call, outcome)
    b"read": (bytes, READ),
    b"refuse": (lambda: fail(ValueError("one line")), REFUSED),
    **{
        text.encode()[:9]: (lambda text=text: fail(ValueError(text)), "message")
        for text in ("one\nother", "a \x1b[31m", "x" * 2000)
    },
    b"hidden": (lambda: fail(ValueError("one line"), MemoryError()), "growth"),
    b"grow": (lambda: bytearray(2 << 30), "growth"),
    b"fail": (lambda: fail(KeyError("x")), "traceback"),
    b"exit": (lambda: fail(SystemExit(1)), "traceback"),
    b"lose": (lambda: fail(SilentLossError("lost")), "loss"),
    b"hang": (lambda: max(itertools.count()), "hang"),
    b"die": (os.abort, "death"),
}
MADE_UP = Target(
    *("made_up", lambda: [{"order": b"read"}], lambda case, rng: {"order": rng.choice((b"read", b"fail"))}),
    lambda folder: ORDERS[(folder / "order").read_bytes()][0](),
    (ValueError,),
)


def test_what_passes_and_what_fails_is_counted_and_kept_and_the_attack_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(watchdog, "HANG_SECONDS", 0.3)
    with Watchdog(MADE_UP) as dog:
        outcomes = {order: dog.read({"order": order}) for order in ORDERS}
    assert {order: outcome.kind for order, outcome in outcomes.items()} == {one: of[1] for one, of in ORDERS.items()}
    assert "test_attack.py" in cause(outcomes[b"fail"])
    counts, failures = attack(MADE_UP, 12, seed=0, findings=tmp_path)
    assert counts.total() == 12 and counts["traceback"] > 1 and len(failures) == 1
    (kept,) = tmp_path.iterdir()
    assert (kept / "order").read_bytes() == b"fail" and kept.name in next(iter(failures.values()))


# ---- work
@pytest.mark.parametrize("kind", KINDS)
def test_work_and_answer_are_linear_in_the_bytes_that_come_in(kind):
    if kind == "request":
        skip_without_extra()
    for name, door in KINDS[kind].items():
        costs, found = tried(*door)
        assert not found, (name, costs)


def test_work_and_answers_that_grow_with_the_square_are_noticed():
    def pairs(n):
        text = b"a" * n
        return Sent(n, lambda: sum(one == other for one in text for other in text))

    costs, found = tried(pairs, 700)
    assert [one.split()[0] for one in found] == ["seconds", "answered"], costs
