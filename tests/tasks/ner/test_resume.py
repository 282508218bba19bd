"""An interrupted run goes on to the result that it would have had: cut at the end of an epoch or of training, or in the
pretraining before it, or ended by a signal. A cut in an epoch of any recipe is in tests/tasks/test_recipes.py."""

import os
import pickle
import signal

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.training.checkpoints import COMPLETE_FILE, last_checkpoint
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.recipes import train_config
from tests.helpers.runs import Bomb, at_event, curves, log_of, power_cut
from tests.tasks.tiny_recipes import left_by

pytestmark = pytest.mark.slow
EPOCHS, STEPS = 4, 2  # 24 texts, 5 batches an epoch: 2 steps of two, and one batch that is left over
# Added to the smallest run, they use all that keeps a state between steps or draws random numbers.
STATES = {
    "num_train_epochs": EPOCHS, "per_device_train_batch_size": 5, "gradient_accumulation_steps": 2,
    "masked_lm_epochs": 2, "feature_dropout": 0.1,
    "logging_steps": 3,  # so that a part of the loss is not logged yet at most checkpoints
}  # fmt: skip
PICKLES = (  # all names that PaddleNLP's trainer and earlier versions read
    "average.pdparams", "rng_state.pth", "optimizer.pdopt", "scheduler.pdparams", "scaler.pdparams",
    "model_state.pdparams", "training_args.bin",
)  # fmt: skip


def resume(folder):
    assert main(["train", "--resume", str(folder)]) == 0


def left(folder):
    """What a run leaves, with its log, and the weights that follow the best epoch."""
    log = {name: values for name, values in curves(folder / "vdl").items() if "second" not in name}
    log["configurations"] = len(log_of(folder / "vdl").get_data("text", "configuration"))
    last = folder / f"checkpoints/checkpoint-{EPOCHS * STEPS}"
    files = [(last / name).read_bytes() for name in ("model.safetensors", "average.safetensors")]
    return left_by(folder), log, files


STEP, PRETRAINING = "on_step_end", "pretraining"


@pytest.mark.parametrize("cuts, at_each_step, resumed_from", [
    ([(STEP, STEPS + 1)], False, f"checkpoint-{STEPS}"),
    ([("on_epoch_end", STEPS)], True, f"checkpoint-{STEPS - 1}"),  # of the last step: once the epoch has ended
    ([(STEP, 2 * STEPS + 1), ("on_epoch_end",)], False, f"checkpoint-{2 * STEPS}"),
    ([(STEP, STEPS + 1, PRETRAINING), (STEP, 1)], True, f"before/checkpoint-{2 * STEPS}"),
    ([("on_train_end",)], False, f"checkpoint-{EPOCHS * STEPS}"),
    ([(STEP, STEPS - 1, PRETRAINING)], False, None),
])  # fmt: skip
def test_a_run_that_was_cut_ends_as_if_it_was_not(whole, config_of, tmp_path, capsys, cuts, at_each_step, resumed_from):
    folder, often = tmp_path / "run", {"checkpoint_minutes": 1e-9} if at_each_step else {}
    for number, cut in enumerate(cuts):
        with power_cut(*cut):
            resume(folder) if number else train_config(config_of("ner", folder, **STATES, **often))
        folder = folder.rename(tmp_path / f"moved {number}")
    for path in (folder / "checkpoints").rglob(COMPLETE_FILE):
        for name in PICKLES:
            (path.parent / name).write_bytes(pickle.dumps(Bomb(tmp_path / "made")))
    capsys.readouterr()
    resume(folder)
    place = f"resuming from {folder / 'checkpoints' / resumed_from}" if resumed_from else "begins anew"
    assert place in capsys.readouterr().out
    assert left(folder) == left(whole("ner", **STATES))
    assert not (tmp_path / "made").exists() and not (folder / "checkpoints" / "before").exists()


def test_a_run_without_dev_that_was_cut_at_its_end_only_writes_its_results(whole, config_of, data_of, tmp_path):
    keys, folder = {"dev_file": "", "dev_fraction": 0, "test_file": data_of["ner"]["dev_file"]}, tmp_path / "run"
    with power_cut("on_train_end"):
        train_config(config_of("ner", folder, **keys))
    resume(folder)
    found, expected = left_by(folder), left_by(whole("ner", **keys))
    for name in ("model.safetensors", "config.json", "metrics.json"):
        assert found[name] == expected[name]


def test_a_run_that_a_signal_ends_names_what_resumes_it(whole, config_of, write, tmp_path, capsys):
    folder = tmp_path / "run"
    config = write(config_of("ner", folder, **STATES), "config.yaml")
    with at_event(STEP, lambda: os.kill(os.getpid(), signal.SIGTERM), STEPS + 1):
        assert main(["train", str(config)]) == 128 + signal.SIGTERM
    error = capsys.readouterr().err
    assert "Traceback" not in error and error.splitlines()[-1].endswith(f"train --resume {folder}")
    assert "best weights so far" in error and len(NerPredictor(folder / "model", "cpu")(["甲乙"])) == 1
    # a signal writes a checkpoint after the current step
    assert last_checkpoint(folder / "checkpoints").name == f"checkpoint-{STEPS + 2}"
    resume(folder)
    assert left(folder) == left(whole("ner", **STATES))
