"""The trained model, exported."""

import shutil

import pytest

from tests.helpers.exports import FORMATS, export


@pytest.fixture(scope="session", params=FORMATS)
def exported(request, trained, tmp_path_factory):
    """The folder of the trained model's export. Do not change its files."""
    return export(tmp_path_factory.mktemp("exported") / "model", request.param, trained.model)


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copied")
