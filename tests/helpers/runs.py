"""Training runs in tests: what one leaves, how one is cut, two processes, and a recipe that only pretends to train."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from visualdl import LogReader

from paddle_rope.tasks import recipes
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.training import loop, series
from paddle_rope.tasks.common.training.monitor import TRAINING, VisualDLMonitor
from paddle_rope.tasks.experiments import plan


def train(config, folder, **keys):
    """Train by the verb, with a configuration that is a file or a dict; returns what the run leaves."""
    words = run_words({**config, **keys}) if isinstance(config, dict) else [str(config), *words_of(keys)]
    assert main(["train", *words, f"--output_dir={folder}"]) == 0
    return left_by(folder)


def run_words(config):
    """The words after ``paddle-rope train`` for a run with these keys alone."""
    return [str(Path(__file__).with_name("keys.yaml")), *words_of(config)]


def words_of(keys):
    return [f"--{key}={value}" for key, value in keys.items()]


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


def log_of(folder):
    """The one VisualDL log in a folder."""
    (path,) = folder.glob("*vdlrecords*.log")
    return LogReader(file_path=str(path))


def curves(folder):
    """The curves of the one VisualDL log in a folder: dict from tag to [(step, value)]."""
    reader = log_of(folder)
    tags = reader.get_tags().get("scalar", [])
    return {tag: [(record.id, record.value) for record in reader.get_data("scalar", tag)] for tag in tags}


class Bomb:
    """As a pickle: a call where it is read, which makes a folder or does something else with strings."""

    def __init__(self, *arguments, function=os.mkdir):
        self.call = function, tuple(map(str, arguments))

    def __reduce__(self):
        return self.call


# ---- the power is cut
class PowerCut(Exception):
    """Ends a run at once."""


@contextlib.contextmanager
def at_event(event, action, step=None, group=TRAINING):
    """In the block, ``action()`` is called after an event of training, such as "on_step_end", at the given step."""
    original = getattr(VisualDLMonitor, event)

    def then_act(self, args, state, control, **kwargs):
        original(self, args, state, control, **kwargs)
        if self.group == group and step in (None, state.global_step):
            action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VisualDLMonitor, event, then_act)
        yield


@contextlib.contextmanager
def power_cut(event, step=None, group=TRAINING):
    """The run in the block ends at an event of training."""

    def cut():
        raise PowerCut

    with pytest.raises(PowerCut), at_event(event, cut, step, group):
        yield


# ---- two processes
# The launcher finds a free port, and the processes bind it seconds later. Outside of the range from which the system
# gives ports to connections nothing else takes it meanwhile.
PORTS = "20000:30000"


def launch(folder, script, *words):
    """Run ``script`` twice, with ``folder`` as working folder and for logs; no process is left behind."""
    command = [
        sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", folder / "log",
        script, *words,
    ]  # fmt: skip
    # Paddle's store of addresses by libuv aborts where its port is taken; the other one raises an error that says so
    environment = {**os.environ, "PORT_RANGE": PORTS, "FLAGS_tcp_store_using_libuv": "0"}
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=400)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed.decode("utf-8", "replace")[-3000:]


# ---- a recipe that trains nothing
def pretended_recipe(monkeypatch, scores_of):
    """A recipe that trains nothing, in place of all: ``calls`` lists its calls, ``trained()`` the folders of its
    trainings in ``runs/``; ``scores_of`` gives what a run leaves."""

    def leave(config):
        folder = Path(config["output_dir"])
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        metrics = {"train_seconds": 60.0, "parameters": 10, **recipe.scores_of(config)}
        (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
        return metrics

    def train(recipe, config, memory=None):
        recipe.calls.append(("train", config))
        if recipe.fails(config):
            raise InputError("wrong data")
        metrics = leave(config)
        (Path(config["output_dir"]) / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        return metrics

    def resume(recipe, folder, memory=None):
        recipe.calls.append(("resume", folder))
        return leave({"output_dir": folder})

    def resolve(config, arguments):
        for key in config:
            if "atention" in key:
                raise InputError(f"unknown key {key!r}")
        return SimpleNamespace(config=config)

    recipe = SimpleNamespace(
        arguments=SimpleNamespace(recipe="ner", SCORES=("f1", "recall")), calls=[], fails=lambda config: False,
        scores_of=scores_of, score_ensemble=lambda config, run_dirs: None,
        trained=lambda: [of["output_dir"].split("runs/")[1] for call, of in recipe.calls if call == "train"],
    )  # fmt: skip
    monkeypatch.setattr(loop, "train", train)
    monkeypatch.setattr(loop, "resume", resume)
    for module in (series, plan):
        monkeypatch.setattr(module, "resolve", resolve)
    for module in (recipes, plan):
        monkeypatch.setattr(module, "get_recipe", lambda name: recipe)
    return recipe
