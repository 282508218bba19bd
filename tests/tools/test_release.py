"""What releases: one version everywhere, its notes alone, a tag; workflows that are safe and true."""

import re
import subprocess

import pytest
import yaml

from tests.conftest import REPOSITORY
from tools.dev import release

FILES = {
    "paddle_rope/__init__.py": '__version__ = "1.2.0"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.0 - 2026-11-26\n\n### Added\n- this\n\n## 1.1.0 - 2026-10-01\n- that\n",
}


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "paddle_rope").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for words in ("init", "config user.name a", "config user.email a@b.c", "add .", "commit -m all"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def test_notes_are_those_of_the_version_alone(repository, capsys):
    for argv in ([], ["v1.2.0"]):
        release.main(argv, repository)
        assert capsys.readouterr().out == "### Added\n- this\n"


@pytest.mark.parametrize("name, old, new", [
    ("paddle_rope/__init__.py", "1.2.0", "1.3.0"),
    ("CITATION.cff", "\nversion: 1.2.0", "\nversion: 1.1.0"),
    ("CHANGELOG.md", "## 1.2.0", "## 1.2.1"),
    ("CHANGELOG.md", " - 2026-11-26", ""),
])  # fmt: skip
def test_files_that_name_another_version_are_not_released(repository, name, old, new):
    (repository / name).write_text(FILES[name].replace(old, new), encoding="utf-8")
    with pytest.raises(SystemExit, match="expected 1.[23].0, .* got 1"):
        release.main([], repository)


def test_the_last_commit_is_tagged_once_with_its_notes(repository):
    with pytest.raises(SystemExit, match="the tag: expected 1.2.0"):
        release.main(["v1.3.0"], repository)
    (repository / "new").touch()
    with pytest.raises(SystemExit, match="nothing uncommitted"):
        release.main(["--tag"], repository)
    (repository / "new").unlink()
    release.main(["--tag"], repository)
    shown = ["git", "tag", "--list", "--format=%(contents)", "v1.2.0"]
    assert subprocess.run(shown, cwd=repository, capture_output=True, text=True).stdout.startswith("1.2.0\n\n### Added")
    with pytest.raises(SystemExit, match="no tag v1.2.0"):
        release.main(["--tag"], repository)


# ---- workflows
WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.yml"))
USED = re.compile(r"uses: (\S+)@([0-9a-f]{40})  # v\d+\.\d+\.\d+\n")


def test_jobs_may_only_read_end_in_time_and_run_pinned_actions_on_their_python():
    used = set()
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        workflow, pins = yaml.safe_load(text), USED.findall(text)
        assert workflow["permissions"] == {"contents": "read"} and workflow["env"] == {"BASE_PYTHON": "python"}, path
        assert "group" in workflow["concurrency"] and len(pins) == text.count("uses: "), path
        assert all(job["timeout-minutes"] <= 120 for job in workflow["jobs"].values()), path
        used.update(pins)
    assert 0 < len(used) == len({action for action, _ in used})  # an action has one version


def test_requirements_have_the_packages_of_the_tests():
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (group,) = re.findall(r"^test = \[(.*)\]", project, re.MULTILINE)
    listed = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(re.findall('"(.*?)"', group)) - {"setuptools>=77,<82"} <= set(listed)
