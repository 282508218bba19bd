"""Training in two processes."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.conftest import REPOSITORY
from tests.helpers.two_processes import launch

# Without random numbers in the model, with all texts in batches that both ways of training have.
OPTIONS = {
    "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0,
    "logging_steps": 1,
    "num_train_epochs": 2,
    "learning_rate": 1e-3,
    "ema_decay": 0.5,
}


def losses(folder):
    states = [json.loads(path.read_text("utf-8")) for path in folder.glob("checkpoints/*/trainer_state.json")]
    history = max(states, key=lambda state: state["global_step"])["log_history"]
    return [entry["loss"] for entry in history if "loss" in entry]


@pytest.mark.slow
def test_two_processes_train_as_one_with_batches_of_twice_the_size(
    train, few_texts, config_file, write, tmp_path, each_epoch_is_better
):
    texts = write(b"".join(few_texts.train.read_bytes().splitlines(keepends=True)[:40]))
    options = {"train_file": texts, "dev_file": few_texts.dev, **OPTIONS}
    words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
    words += ["--output_dir", tmp_path / "two", "--per_device_train_batch_size", "4"]
    launch(tmp_path, REPOSITORY / "tools/train_ner.py", config_file, *words)
    one = train(tmp_path / "one", **options, per_device_train_batch_size=8)
    assert len(losses(one.folder)) == 10
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(one.folder), rtol=1e-5)
    # the first process alone writes
    assert {path.name for path in (tmp_path / "two").iterdir()} == {path.name for path in one.folder.iterdir()}
    assert len(list((tmp_path / "two/vdl").iterdir())) == 1
    assert (
        load_file(tmp_path / "two/model/model.safetensors").keys() == load_file(one.model / "model.safetensors").keys()
    )
