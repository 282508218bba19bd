"""What pyproject.toml cannot describe of the build: tasks/ and configs/ are installed inside of the package."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["paddle_rope*"], exclude=["paddle_rope.tasks*"]),  # a link, for a checkout
        *(f"paddle_rope.{name}" for name in find_packages(include=["tasks*"])),
        "paddle_rope.tasks.configs",
    ],
    package_dir={"paddle_rope.tasks": "tasks", "paddle_rope.tasks.configs": "configs"},
    package_data={
        "": ["*.yaml", "*.jsonl.gz", "*.tsv.gz", "*.css", "*.html", "py.typed", "csrc/*"],
        "paddle_rope.roformer": ["encoders/*/*"],
        "paddle_rope.tasks.configs": ["*/*.yaml", "*/*.jsonl"],
    },
)
