"""What pyproject.toml cannot describe of the build: tasks/ and configs/ are installed inside of the package, and the
address of the repository is taken from the workflow that builds it."""

import os
import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

FOLDERS = {"paddle_rope": "paddle_rope", "paddle_rope.tasks": "tasks", "paddle_rope.tasks.configs": "configs"}
PAGES = {
    "Source": "",
    "Documentation": "blob/main/docs/index.md",
    "Changelog": "blob/main/CHANGELOG.md",
    "Issues": "issues",
}


def packages(name: str, folder: str) -> list[str]:
    """A package and those in it, folders of data included, without which setuptools warns. In a checkout, tasks is a
    link in paddle_rope."""
    inner = find_namespace_packages(folder, exclude=["tasks*", "*__pycache__*"])
    return [name, *(f"{name}.{one}" for one in inner)]


def on_pypi(readme: str, repository: str, commit: str) -> str:
    """The README with absolute links and pictures."""

    def absolute(match):
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}({repository}/{kind}/{commit}/{match[2]})"

    return re.sub(r"(!?\[[^]]*\])\((?!https?:|#)([^)]+)\)", absolute, readme)


readme, urls = Path(__file__).with_name("README.md").read_text(encoding="utf-8"), {}
if "GITHUB_REPOSITORY" in os.environ:  # a workflow of GitHub builds
    repository = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}".format_map(os.environ)
    readme = on_pypi(readme, repository, os.environ["GITHUB_SHA"])
    urls = {name: f"{repository}/{page}" for name, page in PAGES.items()}
setup(
    packages=[one for name, folder in FOLDERS.items() for one in packages(name, folder)],
    package_dir=FOLDERS,
    package_data={
        "": ["*.yaml", "*.jsonl", "*.gz", "*.css", "*.html", "py.typed"],
        "paddle_rope.native.csrc": ["*"],
        "paddle_rope.roformer.encoders": ["*/*"],
    },
    long_description=readme,
    long_description_content_type="text/markdown",
    project_urls=urls,
)
