"""The embedded demo data: questions that mean the same or not, graded sentences, and cases of which one is closer.

The texts were generated from our own templates (``tasks/matching/demo_data.py`` at commit 6bd54f7); nothing is copied
from a data set.
"""

import gzip
from pathlib import Path

from tasks.common.files import write_files

FILES = ("pairs_train.tsv", "pairs_dev.tsv", "grades_train.tsv", "grades_dev.tsv", "triples.jsonl")


def write_demo_data(folder: Path) -> list[Path]:
    """Write :data:`FILES` into an existing folder; return their paths."""
    packed = Path(__file__).parent
    write_files(Path(folder), {name: gzip.decompress((packed / f"{name}.gz").read_bytes()) for name in FILES})
    return [Path(folder) / name for name in FILES]
