"""Two processes that train together save and end at the same steps, whatever their clocks say."""

import json
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.helpers.two_processes import launch


@pytest.mark.slow
def test_a_checkpoint_is_due_for_all_processes_when_it_is_for_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    launch(tmp_path, Path(__file__).with_name("two_clocks.py"), tmp_path)
    # after 60 s of the faster clock, 15 steps, at the next step that is asked; the signal of step 45 likewise
    expected = {"saved": [20, 40, 50], "ended": [50]}
    assert [json.loads((tmp_path / f"{rank}.json").read_text("utf-8")) for rank in (0, 1)] == [expected] * 2
