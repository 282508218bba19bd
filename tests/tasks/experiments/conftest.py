"""A recipe that only pretends to train."""

import pytest

from tests.helpers.pretended import pretended_recipe


@pytest.fixture
def recipe(monkeypatch):
    """In place of every recipe, see :func:`tests.helpers.pretended.pretended_recipe`."""
    made = pretended_recipe()
    monkeypatch.setattr("tasks.experiments.engine.get_recipe", lambda name: made)
    return made
