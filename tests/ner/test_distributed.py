"""Training in two processes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

REPOSITORY = Path(__file__).resolve().parents[2]
# Without random numbers in the model, with all texts in batches that both ways of training have.
OPTIONS = {
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "logging_steps": 1,
    "num_train_epochs": 2,
    "learning_rate": 1e-3,
    "ema_decay": 0.5,
}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture
def launch(config_file, tmp_path):
    """Train in two processes; no process is left behind."""

    def launch(folder, **options):
        words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
        command = [
            sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", tmp_path / "log",
            "--start_port", free_port(), REPOSITORY / "tools/train_ner.py", config_file,
            "--output_dir", folder, *words,
        ]  # fmt: skip
        with subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path,
            start_new_session=True,
        ) as process:  # fmt: skip
            try:
                printed, _ = process.communicate(timeout=400)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, printed.decode("utf-8", "replace")[-3000:]

    return launch


def losses(folder):
    states = [json.loads(path.read_text("utf-8")) for path in folder.glob("checkpoints/*/trainer_state.json")]
    history = max(states, key=lambda state: state["global_step"])["log_history"]
    return [entry["loss"] for entry in history if "loss" in entry]


def test_two_processes_train_as_one_with_batches_of_twice_the_size(
    launch, train, few_texts, tmp_path, each_epoch_is_better
):
    texts = tmp_path / "texts.jsonl"
    texts.write_bytes(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:40]))
    options = {"train_file": texts, "dev_file": few_texts.dev, **OPTIONS}
    launch(tmp_path / "two", **options, per_device_train_batch_size=4)
    one = train(tmp_path / "one", **options, per_device_train_batch_size=8)
    assert len(losses(one.folder)) == 10
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(one.folder), rtol=1e-5)
    # the first process alone writes
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in one.folder.iterdir()}
    assert len(list((tmp_path / "two/vdl").iterdir())) == 1
    two = load((tmp_path / "two/model/model.safetensors").read_bytes())
    assert two.keys() == load(one.weights).keys()
