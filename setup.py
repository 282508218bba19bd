"""What pyproject.toml cannot describe of the build: tasks/ and configs/ are installed inside of the package."""

from setuptools import find_namespace_packages, setup

FOLDERS = {"paddle_rope": "paddle_rope", "paddle_rope.tasks": "tasks", "paddle_rope.tasks.configs": "configs"}


def packages(name: str, folder: str) -> list[str]:
    """A package and those in it, folders of data included, without which setuptools warns. In a checkout, tasks is a
    link in paddle_rope."""
    inner = find_namespace_packages(folder, exclude=["tasks*", "*__pycache__*"])
    return [name, *(f"{name}.{one}" for one in inner)]


setup(
    packages=[one for name, folder in FOLDERS.items() for one in packages(name, folder)],
    package_dir=FOLDERS,
    package_data={
        "": ["*.yaml", "*.jsonl", "*.gz", "*.css", "*.html", "py.typed"],
        "paddle_rope.native.csrc": ["*"],
        "paddle_rope.roformer.encoders": ["*/*"],
    },
)
