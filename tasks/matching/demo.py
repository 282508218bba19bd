"""The embedded demo data: questions that mean the same or not, graded sentences, and which of two texts is closer.

The texts were generated from our own templates (``tasks/matching/demo_data.py`` at commit 6bd54f7); nothing is copied
from a data set.
"""

import gzip
import json
from pathlib import Path

from paddle_rope.tasks.common.files import write_files


def write_demo(folder: Path) -> list[str]:
    """Write the files of :func:`write_demo_data`; return a line about each."""
    paths = write_demo_data(folder)
    return [f"{path}: {len(path.read_text(encoding='utf-8').splitlines())} lines" for path in paths]


def write_demo_data(folder: Path) -> list[Path]:
    """Write pairs_train.tsv, pairs_dev.tsv, grades_train.tsv, grades_dev.tsv and triples.jsonl into an existing folder;
    return their paths."""
    packed = gzip.decompress(Path(__file__).with_name("demo.jsonl.gz").read_bytes())
    files = {one["name"]: one["content"].encode("utf-8") for one in map(json.loads, packed.splitlines())}
    write_files(Path(folder), files)
    return [Path(folder) / name for name in files]
