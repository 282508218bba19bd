"""A small model, and files of texts in all kinds of files."""

import csv
import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.demo import read_demo_corpus, write_demo_corpus
from tests.helpers.models import FORMATS, export, write_small_ner

THRESHOLD = 20.0  # few random scores exceed it


@pytest.fixture(scope="session")
def texts():
    """40 different texts."""
    _, dev = read_demo_corpus()
    return list(dict.fromkeys(record["text"] for record in dev))[:40]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of a model with random weights, which finds some entities."""
    folder = tmp_path_factory.mktemp("scaling_model")
    train, _ = write_demo_corpus(folder, train_size=60, dev_size=10)
    return write_small_ner(folder / "model", read_examples(train), thresholds=THRESHOLD)


@pytest.fixture(scope="session")
def exported(model, tmp_path_factory):
    """The folder of the model's export: with ONNX a process begins without paddle, in a fraction of the time."""
    return export(tmp_path_factory.mktemp("scaling_exported") / "model", FORMATS[0], model)


def write_lines(path, lines):
    content = "".join(f"{line}\n" for line in lines).encode("utf-8")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_jsonl(path, records):
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records))


def write_text(path, records):
    write_lines(path, (record["text"] for record in records))


def write_csv(path, records):
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, list(records[0]))
        rows.writeheader()
        rows.writerows(records)


def write_parquet(path, records):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path, row_group_size=7)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}


WRITERS = {"a.jsonl": write_jsonl, "b.jsonl.gz": write_jsonl, "c.csv": write_csv, "d.parquet": write_parquet}
WRITERS |= {"e.txt": write_text, "f.txt.gz": write_text}
