"""Training runs in tests, and what one leaves."""

import json
from types import SimpleNamespace

import yaml
from visualdl import LogReader

from tasks.commands.main import main


def train(config, folder, **keys):
    """Train by the verb; returns what the run leaves."""
    words = [f"--{key}={value}" for key, value in keys.items()]
    assert main(["train", str(config), "--output_dir", str(folder), *words]) == 0
    return left_by(folder)


def left_by(folder):
    """The files of a run, read."""
    predictions = folder / "predictions_dev.jsonl"
    return SimpleNamespace(
        folder=folder,
        model=folder / "model",
        weights=(folder / "model/model.safetensors").read_bytes(),
        config=yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8")),
        model_config=json.loads((folder / "model/config.json").read_text(encoding="utf-8")),
        metrics=json.loads((folder / "metrics.json").read_text(encoding="utf-8")),
        predictions=read_json_lines(predictions) if predictions.exists() else None,
    )


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def curve(folder, tag):
    """A curve of the VisualDL log: [(step, value)]."""
    (path,) = (folder / "vdl").glob("*vdlrecords*.log")
    return [(record.id, record.value) for record in LogReader(file_path=str(path)).get_data("scalar", tag)]
