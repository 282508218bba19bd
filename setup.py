"""What pyproject.toml cannot describe of the build: configs/ becomes the folder tasks/configs/ of the package."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["paddle_rope*", "tasks*"]), "tasks.configs"],
    package_dir={"tasks.configs": "configs"},
    package_data={
        "": ["*.yaml", "*.jsonl.gz", "*.tsv.gz", "*.css", "*.html", "py.typed", "csrc/*"],
        "paddle_rope.roformer": ["encoders/*/*"],
        "tasks.configs": ["*/*.yaml", "*/*.jsonl"],
    },
)
