"""A run whose pictures are drawn."""

import pytest

from tasks.ner.reports.monitoring import NerMonitor
from tests.tasks.ner.conftest import SHOW


@pytest.fixture(scope="module", autouse=True)
def without_pictures():
    """Pictures are drawn here."""


@pytest.fixture(scope="module", autouse=True)
def without_drawings():
    """And so are the curves of the epochs."""


@pytest.fixture(scope="session")
def pictured(train, tmp_path_factory):
    """What a run leaves that has learned to find entities. Do not change its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NerMonitor, "show", SHOW)
        return train(tmp_path_factory.mktemp("drawn") / "run", num_train_epochs=6)
