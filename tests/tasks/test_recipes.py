"""The contract of all recipes, each on its smallest run (tiny_recipes.py).

A run leaves the same files with the same meaning; the same seed gives the same bytes, and so does its saved
configuration; a run that was cut ends as one that was not; data in memory give the run of the files; mistakes are one
line with status 2, and nothing is written. A recipe's own tests need none of this again.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from paddle_rope.roformer import RoFormerConfig
from paddle_rope.tasks import recipes
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import locked
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.checkpoints import PROGRESS_FILE, last_checkpoint, mark_complete
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.settings import resolve
from paddle_rope.tasks.ner.recipe import NerRecipe
from paddle_rope.tasks.recipes import RECIPES, get_arguments, get_recipe
from tests.conftest import REPOSITORY
from tests.helpers.runs import power_cut, words_of
from tests.tasks.tiny_recipes import ENDS, WITH_LABELS, left_by, weights

CONFIGS = [path.relative_to(REPOSITORY) for path in sorted((REPOSITORY / "configs").glob("*/*.yaml"))]


def test_a_recipe_is_twelve_hooks_and_nothing_that_is_shared():
    hooks = {name for name in (*Recipe.__annotations__, *vars(Recipe)) if not name.startswith("_")}
    assert len(hooks) == 12
    for name in RECIPES:
        recipe, arguments = type(get_recipe(name)), get_arguments(name)
        assert get_recipe(name).arguments is arguments and arguments.recipe == name
        assert recipe.__bases__ == (NerRecipe if name == "relations" else Recipe,)
        assert {one for one in vars(recipe) if not one.startswith("_")} <= hooks


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_leaves_its_files(whole, recipe):
    folder = whole(recipe)
    of_epochs = {"epochs.csv", "epochs.png", "predictions_dev.jsonl"} if recipe in WITH_LABELS else set()
    files = {"config.yaml", "inputs.json", "metrics.json", "model", "vdl", "checkpoints", *of_epochs}
    assert {path.name for path in folder.iterdir()} == files
    model = {"config.json", "model.safetensors", "SHA256SUMS", "vocab.txt", "tokenizer_config.json"}
    model |= {"features.json"} if recipe == "ner" else set()
    assert {path.name for path in (folder / "model").iterdir()} == model
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["train_seconds"] >= 0 and metrics["seed"] == 42
    assert {*metrics["dev"]} & {*get_arguments(recipe).SCORES}
    assert metrics["parameters"] == weights(folder).size
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    assert (config["recipe"], config["output_dir"], config["seed"]) == (recipe, str(folder), 42)
    values = [one for value in config.values() for one in (value if isinstance(value, list) else [value])]
    assert {*json.loads((folder / "inputs.json").read_text(encoding="utf-8"))} <= {*map(str, values)}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_another_seed_gives_another_run(whole, config_of, recipe, tmp_path):
    recipes.train_config(config_of(recipe, tmp_path / "run", seed=7))
    assert (weights(tmp_path / "run") != weights(whole(recipe))).any()


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_saved_configuration_gives_the_same_run_also_if_that_is_cut(whole, recipe, tmp_path, capsys):
    folder, saved = tmp_path / "before" / "run", whole(recipe) / "config.yaml"
    changes = {"output_dir": str(folder), "checkpoint_minutes": 1e-9}
    with power_cut("on_step_end", ENDS[recipe] - 1):  # a defect comes through the command, too
        main(["train", str(saved), *words_of(changes)])
    first, second = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (saved, folder / "config.yaml"))
    assert {**first, **changes} == second
    moved = shutil.copytree(folder, tmp_path / "run")
    shutil.rmtree(folder)
    checkpoint = last_checkpoint(moved / "checkpoints")
    progress = checkpoint / PROGRESS_FILE.format(rank=0)
    content = json.loads(progress.read_text(encoding="utf-8"))
    progress.write_text(json.dumps({**content, "seconds": 5000}), encoding="utf-8")
    mark_complete(checkpoint)
    capsys.readouterr()
    assert main(["train", "--resume", str(moved)]) == 0
    printed = capsys.readouterr().out
    trained, in_all = map(int, re.search(r"trained in (\d+) s, (\d+) s in all", printed).groups())
    assert "resuming from" in printed and 5000 <= trained <= in_all
    assert left_by(moved) == left_by(whole(recipe))


def _record(line):
    return json.loads(line) if line[0] == "{" else dict(zip(("sentence1", "sentence2", "label"), line.split("\t")))


@pytest.mark.parametrize("recipe", WITH_LABELS)
def test_data_in_memory_give_the_run_of_the_files_and_it_goes_on_with_them(whole, config_of, recipe, tmp_path):
    config, folder = config_of(recipe, tmp_path / "run", checkpoint_minutes=1e-9), tmp_path / "run"
    files = {split: config.pop(f"{split}_file") for split in ("train", "dev")}
    lines = {split: Path(file).read_text(encoding="utf-8").splitlines() for split, file in files.items()}
    data = {split: [_record(line) for line in some] for split, some in lines.items()}
    with power_cut("on_step_end", ENDS[recipe] - 1):
        recipes.train_config(config, data)
    for again, message in (
        (None, "train_file is .*, of a run that had its data in memory"),
        ({"train": data["train"]}, "dev_file is .*, of a run that had its data in memory"),
        ({**data, "train": data["train"][1:]}, r"^train \(in memory\): has changed since the run began"),
        ({**data, "test": data["dev"]}, r"^test \(in memory\): has changed since the run began"),
    ):
        with pytest.raises(InputError, match=message):
            recipes.resume(folder, again)
    recipes.resume(folder, data)
    found, expected = left_by(folder), left_by(whole(recipe))
    assert {*json.loads(found.pop("inputs.json"))} == {"train (in memory)", "dev (in memory)"}
    del expected["inputs.json"]
    if recipe == "matching":  # its predictions name the places
        del found["predictions_dev.jsonl"], expected["predictions_dev.jsonl"]
    assert found == expected


# ---- refusals
REFUSED = {  # keys in place of those of the smallest run -> words that the line has
    "unknown key": ({"atention": "linear"}, ("atention", "did you mean 'attention'")),
    "key of another recipe": ({"stages": "9x9x9", "span_head": "dense"}, ("unknown key", " of ")),
    "key of PaddleNLP that contradicts": ({"overwrite_output_dir": True}, ("overwrite_output_dir",)),
    "key that the recipe sets itself": ({"evaluation_strategy": "no"}, ("evaluation_strategy", "cannot be set")),
    "recipe that is no name": ({"recipe": ["ner"]}, ("no recipe ['ner']",)),
    "wrong type": ({"seed": "many"}, ("seed must be", "'many'")),
    "out of range": ({"seed": -1}, ("seed must be", "-1")),
    "size 0": ({"hidden_size": 0}, ("hidden_size", "0")),
    "sizes that contradict": ({"num_attention_heads": 3}, ("16", "3 heads")),
    "device": ({"device": "abacus"}, ("--device abacus",)),
    "weights that are not there": ({"pretrained": "nowhere"}, ("pretrained",)),
    "no folder for the run": ({"output_dir": ""}, ("no 'output_dir'",)),
    "folder that is a file": ({"output_dir": "taken/file"}, ("taken/file", "is a file")),
    "folder within a file": ({"output_dir": "taken/file/run"}, ("taken/file/run", "cannot be made")),
    "folder with another run": ({"output_dir": "taken"}, ("taken", "another --output_dir")),
    "missing data": ({"train_file": "nope", "text_files": "nope"}, ("nope", "no such file")),
    "seeds": ({"seeds": "1,1"}, ("--seeds '1,1'", "different numbers")),
}


@pytest.mark.parametrize("mistake", REFUSED)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_mistake_is_one_line_and_writes_nothing(config_of, refused, recipe, mistake, tmp_path):
    changes, said = REFUSED[mistake]
    config = config_of(recipe, "run")
    keys = {*get_arguments(recipe).__dataclass_fields__}
    if mistake in ("missing data", "key of another recipe"):
        changes = {key: value for key, value in changes.items() if (key in keys) == (mistake == "missing data")}
    if mistake == "weights that are not there":
        config = {key: value for key, value in config.items() if key not in get_arguments(recipe).SETTLED_BY_PRETRAINED}
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**config, **changes}), encoding="utf-8")
    message = refused("train", "config.yaml")
    assert [part for part in said if part not in message] == []


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_text_beyond_learned_positions_is_refused_before_training(config_of, write, refused, monkeypatch, recipe):
    monkeypatch.setattr(RoFormerConfig, "most_tokens", 5)
    write(config_of(recipe, "run", position_embedding="learned"), "config.yaml")
    message, key = refused("train", "config.yaml"), get_arguments(recipe).LENGTH_KEY
    assert "learned positions end at 5, and the longest text has" in message and f"lower {key}, or" in message
    assert key in get_arguments(recipe).__dataclass_fields__


@pytest.mark.parametrize("recipe", ["ner", "classification", "matching"])
def test_no_text_is_read_beyond_the_learned_positions_of_the_pretrained_encoder(recipe, write, tmp_path):
    bert = {"model_type": "bert", "hidden_size": 16, "num_attention_heads": 2, "max_position_embeddings": 64}
    write(json.dumps(bert), "config.json")
    given, key = {"train_file": "a", "output_dir": "b", "device": "cpu"}, get_arguments(recipe).LENGTH_KEY
    most = {"max_characters": 62, "max_tokens": 64}[key]  # with [CLS] and [SEP]
    for folder, position, chosen, expected in (
        (tmp_path, {}, 1000, most),
        (tmp_path, {"position_embedding": "learned"}, 1000, most),
        (tmp_path, {"position_embedding": "qk"}, 1000, 1000),
        (tmp_path, {}, 30, 30),
        ("nowhere", {}, 1000, 1000),
    ):
        found = resolve({**given, **position, "pretrained": str(folder), key: chosen}, get_arguments(recipe))
        assert found.config[key] == getattr(found.keys, key) == expected


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_is_not_resumed_where_it_cannot_go_on(whole, refused, recipe, tmp_path):
    finished, run = whole(recipe), tmp_path / "run"
    assert "is complete" in refused("train", "--resume", finished)
    shutil.copytree(finished, run, ignore=shutil.ignore_patterns("checkpoints"))
    (run / "checkpoints").mkdir()
    (run / "metrics.json").unlink()
    with locked(run):
        assert "another process works on this run" in refused("train", "--resume", "run")
    inputs = dict.fromkeys(json.loads((run / "inputs.json").read_text(encoding="utf-8")), "0" * 64)
    if inputs:
        (run / "inputs.json").write_text(json.dumps(inputs), encoding="utf-8")
        assert "has changed since the run began" in refused("train", "--resume", "run")
    for path in list(run.iterdir()):
        elsewhere = path.rename(tmp_path / "elsewhere")
        path.symlink_to(elsewhere)
        message = refused("train", "--resume", "run")  # which leaves all files as they are
        assert message.startswith(f"run/{path.name}: ") and "symbolic links" in message
        path.unlink()
        elsewhere.rename(path)
    (run / "config.yaml").unlink()
    assert "no config.yaml" in refused("train", "--resume", "run")


@pytest.mark.parametrize("path", [path for path in CONFIGS if path.parent.name != "experiments"], ids=str)
def test_configurations_of_the_project_are_valid(path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("paddle_rope.native.products.why_no_bfloat16", lambda: None)  # whatever this processor has
    given = {"train_file": "train", "output_dir": "run", "device": "cpu", **read_run_config(path)}
    given = {key: value for key, value in given.items() if key != "train_file" or given["recipe"] in WITH_LABELS}
    config = resolve({**given, "device": "cpu"}, get_arguments(given["recipe"])).config
    numbers = {key: value for key, value in given.items() if isinstance(value, (int, float))}
    assert {*given} <= {*config} and {key: config[key] for key in numbers} == numbers
