"""The command line: verbs and their help, which come without Paddle, and what works without Paddle."""

import dataclasses
import io
import json
import os
import subprocess
import sys

import pytest

from paddle_rope.tasks.commands.main import VERBS, main
from paddle_rope.tasks.commands.train import read_words
from paddle_rope.tasks.recipes import RECIPES, get_arguments
from tests.conftest import REPOSITORY
from tests.tasks.conftest import Pipe

CHOICES = {"demo": ("ner", "matching"), "benchmark": ("length", "entities")}
TOOLS = [path for path in (REPOSITORY / "tools").glob("*.py") if "import main_of" in path.read_text("utf-8")]
# Each call in one process, with the exit status that it must have, and what may not be imported for it.
CALLS = """
import json, runpy, sys
from paddle_rope.__main__ import main
for words, wanted in json.loads(sys.argv[1]):
    try:
        if words[:1] and words[0].endswith(".py"):
            sys.argv = words
            status = runpy.run_path(words[0], run_name="__main__")
        else:
            status = main(words)
    except SystemExit as ended:
        status = ended.code
    heavy = [name for name in ("paddle", "paddlenlp", "matplotlib") if name in sys.modules]
    if (status or 0) != wanted or heavy:
        sys.exit(f"{words}: status {status}, imports {heavy}")
"""


def run(calls, folder, path=REPOSITORY):
    """Make the calls, lists of words each, in a process of their own; what it leaves."""
    words = [sys.executable, "-c", CALLS, json.dumps(calls)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [path, REPOSITORY / "tools"]))}
    return subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=folder, env=environment)


def test_help_of_every_verb_and_tool_comes_without_paddle_from_any_folder(tmp_path):
    calls = [[verb] for verb in VERBS] + [[verb, choice] for verb, choices in CHOICES.items() for choice in choices]
    tools = [[str(tool)] for tool in TOOLS]
    done = run([[[*words, "--help"], 0] for words in [[], *calls, *tools]], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [words for words in calls if f"paddle-rope {' '.join(words)}" not in done.stdout] == [] and len(tools) > 5
    assert all(len(tool.read_text("utf-8").splitlines()) <= 10 for tool in TOOLS)


def test_mistakes_in_training_are_told_before_paddle_is_imported(write, tmp_path):
    data = write('{"text": "a", "entities": [{"start": 0, "end": 1, "type": "t"}]}\n', "data.jsonl")
    unlabeled = write('{"text": "a", "entities": []}\n', "unlabeled.jsonl")
    taken = write("", "taken/metrics.json").parent
    config = write(f"recipe: ner\ntrain_file: {data}\noutput_dir: {tmp_path / 'run'}\n", "run.yaml")
    mistakes = {  # words after the configuration -> what is said
        "--trainfile x": "unknown key 'trainfile' of ner; did you mean 'train_file'?",
        "--num_attention_heads 3": "configuration: hidden_size 256 must be a multiple of 6: 3 heads ",
        "--lr_scheduler_type steep": "configuration: lr_scheduler_type must be one of linear, ",
        "--seeds 1,x": "--seeds '1,x': give different numbers ",
        "--train_file cluener": "cluener: no such file; paddle-rope download cluener downloads it",
        f"--train_file {unlabeled}": f"{unlabeled}: no entity is labeled in it; ",
        f"--masked_lm_epochs 1 --unlabeled_files {data},no.txt": "no.txt: no such file; ",
        "--pretrained nowhere": "configuration: pretrained: nowhere: no such folder",
        f"--output_dir {taken}": f"{taken}: is not empty; ",
    }
    calls = [["train", "nowhere.yaml"], *(["train", str(config), *words.split()] for words in mistakes)]
    done = run([[words, 2] for words in calls], tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    told = ["nowhere.yaml: no such file; check the path", *mistakes.values()]
    lines = done.stderr.splitlines()
    assert [line for line, start in zip(lines, told, strict=True) if not line.startswith(f"error: {start}")] == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words, expected", [
    ("my.jsonl --epochs 3 --lr=1e-3", {"recipe": "ner", "pretrained": "small", "train_file": "my.jsonl",
                                       "num_train_epochs": "3", "learning_rate": "1e-3"}),
    ("--train_file my.jsonl --pretrained=", {"fit_to_data": True, "train_file": "my.jsonl", "pretrained": ""}),
    ("my.tsv --recipe matching", {"recipe": "matching", "architecture": "bi_encoder", "train_file": "my.tsv"}),
    ("--recipe ner configs/ner/demo.yaml --batch_size 4",
     {"recipe": "ner", "per_device_train_batch_size": "4", "fit_to_data": None}),
    ("--recipe pretraining --seed 3", {"recipe": "pretraining", "seed": "3"}),
])  # fmt: skip
def test_labeled_data_are_trained_with_the_configuration_for_data_of_your_own(words, expected):
    config = read_words(words.split())
    assert {key: config.get(key) for key in expected} == expected


@pytest.mark.parametrize("recipe", RECIPES)
def test_help_lists_the_keys_of_a_recipe_first_with_default_and_meaning(recipe, capsys):
    assert main(["train", "--recipe", recipe, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    titles = [line for line in lines if line.endswith(":") and line.startswith("Keys ")]
    assert len(titles) == 3 and titles[0].startswith(f"Keys of {recipe}")
    listed = {line.split()[0]: line.split()[1] for line in lines[lines.index(titles[0]) :] if line[:3].strip()}
    arguments = get_arguments(recipe)
    assert {one.name for one in dataclasses.fields(arguments)} - arguments().unused_keys() <= {*listed}
    assert listed["output_dir"] == "required" and listed["seed"] == "42" and "do_predict" not in listed
    assert not {*arguments.PLAN.closed} & {*listed}


@pytest.mark.parametrize("recipe, line, keys", [
    ("matching", "你好\t今天天气\n", {"sentence1", "sentence2", "score", "label"}),
    ("classification", '{"sentence": "今天天气", "label": 5}\n', {"text", "label", "probability"}),
    ("ner", "今天天气\n", {"text", "entities"}),
])  # fmt: skip
def test_each_line_of_a_pipe_is_answered_before_the_next(folders, monkeypatch, capsys, recipe, line, keys):
    printed = []
    pipe = Pipe(*[line.encode("utf-8")] * 3, before_each=lambda: printed.append(capsys.readouterr().out))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe), encoding="ascii"))  # of the locale C
    assert main(["predict", str(folders[recipe]), "--device", "cpu"]) == 0
    assert "\\u" not in "".join(printed)
    first, *answers = [list(map(json.loads, lines.splitlines())) for lines in printed]
    assert first == [] and [len(answer) for answer in answers] == [1, 1, 1]
    assert all({*answer[0]} == keys and "今天天气" in answer[0].values() for answer in answers)
