"""What keeps the workflows of GitHub safe and true, and the packages of the tests in one list."""

import re

import pytest
import yaml

from tests.conftest import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
USED = re.compile(r"uses: (\S+)@([0-9a-f]{40})  # v\d+\.\d+\.\d+\n")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_may_only_read_end_in_time_and_run_pinned_actions_on_their_python(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"} and workflow["env"] == {"BASE_PYTHON": "python"}
    assert "group" in workflow["concurrency"]
    assert all(job["timeout-minutes"] <= 120 for job in workflow["jobs"].values())
    assert len(USED.findall(text)) == text.count("uses: ")


def test_an_action_has_one_version():
    used = {pin for path in WORKFLOWS for pin in USED.findall(path.read_text(encoding="utf-8"))}
    assert len(used) == len({action for action, _ in used})


def test_requirements_have_the_packages_of_the_tests():
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (group,) = re.findall(r"^test = \[(.*)\]", project, re.MULTILINE)
    listed = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(re.findall('"(.*?)"', group)) - {"setuptools>=77,<82"} <= set(listed)
