"""The command line: verbs and their help, which come without paddle."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import paddle_rope
from tasks.commands.main import VERBS, main
from tasks.recipes import RECIPES, get_arguments, get_recipe

REPOSITORY = Path(__file__).resolve().parents[3]
VERBS_WITH_A_CHOICE = {
    "demo": ("ner", "matching"),
    "benchmark": ("length", "peers", "prediction", "entities", "service", "documents"),
}
CALLS = [
    [],
    ["--version"],
    *([verb] for verb in VERBS),
    *([verb, choice] for verb, choices in VERBS_WITH_A_CHOICE.items() for choice in choices),
]
# Help of each call in one process, and then what is imported.
HELP_OF_ALL = """
import sys
from paddle_rope.__main__ import main
for words in {calls}:
    try:
        status = main([*words, "--help"])
    except SystemExit as ended:
        status = ended.code
    heavy = [name for name in ("paddle", "paddlenlp", "matplotlib") if name in sys.modules]
    if status or heavy:
        sys.exit(f"{{words}}: status {{status}}, imports {{heavy}}")
"""
# What training refuses, each alone, in one process, and then what is imported.
REFUSED_BY_TRAINING = """
import sys
from paddle_rope.__main__ import main
for words in {calls}:
    status = main(["train", *words])
    heavy = [name for name in ("paddle", "paddlenlp", "matplotlib") if name in sys.modules]
    if status != 2 or heavy:
        sys.exit(f"{{words}}: status {{status}}, imports {{heavy}}")
"""
DOORS = sorted(path.name for path in (REPOSITORY / "tools").glob("*.py") if "import door" in path.read_text("utf-8"))
HELP_OF_A_DOOR = """
import runpy, sys
sys.argv = [{path!r}, "--help"]
try:
    runpy.run_path({path!r}, run_name="__main__")
except SystemExit as ended:
    sys.exit(ended.code or [name for name in ("paddle", "paddlenlp") if name in sys.modules] or 0)
"""


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options)


def test_help_of_every_verb_comes_without_paddle():
    done = run(HELP_OF_ALL.format(calls=CALLS), cwd=REPOSITORY)
    assert (done.returncode, done.stderr) == (0, "")
    for words in CALLS[2:]:
        assert f"paddle-rope {' '.join(words)}" in done.stdout


@pytest.mark.parametrize("name", DOORS)
def test_help_of_every_tool_comes_without_paddle_from_any_folder(name, tmp_path):
    path = str(REPOSITORY / "tools" / name)
    done = run(HELP_OF_A_DOOR.format(path=path), cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY / "tools")})
    assert (done.returncode, done.stderr) == (0, "")
    assert "paddle-rope " in done.stdout
    assert len(Path(path).read_text("utf-8").splitlines()) <= 10


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_verbs_are_listed_with_a_line_each(words, capsys):
    with pytest.raises(SystemExit) as ended:  # as argparse ends after its help
        main(words)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == list(VERBS) and max(map(len, lines)) <= 120


def test_version_is_that_of_the_library(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"paddle-rope {paddle_rope.__version__}\n"


@pytest.mark.parametrize(
    "words, message",
    [
        (["trian"], "paddle-rope: unknown verb 'trian'; did you mean 'train'? See paddle-rope --help"),
        (["--verion"], "paddle-rope: no verb; take one of train, predict,"),
        (["train"], "no configuration file; usage: paddle-rope train CONFIG.yaml [--key value ...]"),
        (["train", "--seed", "1"], "command line: no 'recipe'; add the line 'recipe: ner', or another of the rec"),
        (["train", "--recipe", "nre", "--seed", "1"], "no recipe 'nre'; did you mean 'ner'?"),
        (["train", "--resume"], "usage: paddle-rope train --resume OUTPUT_DIR; the run keeps its configuration"),
        (["train", "a.yaml", "--resume", "run"], "usage: paddle-rope train --resume OUTPUT_DIR; the run keeps its"),
        (
            ["train", "ner", "my run.yaml"],
            "ner: the recipe is no longer part of the command; write paddle-rope train 'my run.yaml', with 'reci",
        ),
        (
            ["predict", "matching", "model"],
            "matching: the recipe is no longer part of the command; write paddle-rope predict model",
        ),
        (["predict", "x.txt"], "x.txt: no such folder; give the folder OUTPUT_DIR/model of a training run"),
        (["predict"], "the following arguments are required: MODEL_DIR; see paddle-rope predict --help"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line_and_status_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(f"error: {message}") and captured.err.count("\n") == 1


def test_mistakes_in_training_are_told_before_paddle_is_imported(tmp_path):
    data, taken = tmp_path / "data.jsonl", tmp_path / "taken"
    data.write_text('{"text": "a", "entities": []}\n')
    taken.mkdir()
    (taken / "metrics.json").write_text("{}")
    config = tmp_path / "run.yaml"
    config.write_text(f"recipe: ner\ntrain_file: {data}\noutput_dir: {tmp_path / 'run'}\n")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"text": "a", "entities": [{"start": 0, "end": 9, "type": "x"}]}\n')
    mistakes = {  # words after the configuration -> what is said
        ("--trainfile", "x"): "unknown key 'trainfile'; did you mean 'train_file'?",
        ("--max_tokens", "9"): "key 'max_tokens' is a key of matching, not of this recipe; leave it out",
        ("--stages", "9x9x9"): "key 'stages' is a key of pretraining, not of this recipe; leave it out",
        ("--sharding", "stage1"): "key 'sharding' of PaddleNLP does nothing here: ",
        ("--hidden_size", "big"): "configuration: hidden_size must be a whole number, got 'big'",
        ("--num_attention_heads", "3"): "configuration: hidden_size 256 does not split into 3 heads ",
        ("--attention", "sharp"): "configuration: ",
        ("--position_embedding", "kq"): "configuration: position_embedding must be one of ",
        ("--learning_rate", "fast"): "configuration: learning_rate must be a number, got 'fast'",
        ("--lr_scheduler_type", "steep"): "configuration: lr_scheduler_type must be one of linear, ",
        ("--warmup_ratio", "2"): "configuration: warmup_ratio must be from 0 to 1, got 2.0",
        ("--bf16", "perhaps"): "configuration: bf16 must be true or false, got 'perhaps'",
        ("--seeds", "1,x"): "--seeds 1,x: give numbers ",
        ("--train_file", ""): "no 'train_file': name it ",
        ("--train_file", "no.txt"): "no.txt: no such file; ",
        ("--train_file", "cluener"): "cluener: no such file; paddle-rope download cluener downloads it",
        ("--dev_file", "no.txt"): "no.txt: no such file; ",
        ("--masked_lm_epochs", "1", "--texts", f"{data}, no.txt"): "no.txt: no such file; ",
        ("--pretrained", "nowhere"): "configuration: pretrained: nowhere: no such folder",
        ("--output_dir", str(taken)): f"{taken}: is not empty; ",
        ("--output_dir", str(data)): f"{data}: is a file; ",
        ("--output_dir", "/proc/run"): "/proc/run: cannot be made ",
        ("--train_file", str(wrong)): f"{wrong}:1: span [0, 9] is not in the text ",
        ("--dev_file", str(wrong)): f"{wrong}:1: span [0, 9] is not in the text ",
    }
    calls = [["nowhere.yaml"], *([str(config), *words] for words in mistakes)]
    done = run(REFUSED_BY_TRAINING.format(calls=calls), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    told = ["nowhere.yaml: no such configuration file; ", *mistakes.values()]
    assert [line for line, start in zip(lines, told, strict=True) if not line.startswith(f"error: {start}")] == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [["--help"], ["train", "--recipe", "ner", "--help"]])
def test_a_reader_that_leaves_ends_it_without_a_traceback(words):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "paddle_rope", *words], stdout=write, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("recipe", RECIPES)
def test_help_lists_the_keys_of_a_recipe_first_with_default_and_meaning(recipe, capsys):
    assert main(["train", "--recipe", recipe, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    titles = [line for line in lines if line.endswith(":") and line.startswith("Keys ")]
    assert [title.split(" that ")[0].rstrip(":") for title in titles] == [
        f"Keys of {recipe}", "Keys", "Keys of PaddleNLP's TrainingArguments",
    ]  # fmt: skip
    listed = {line.split()[0]: line.split()[1] for line in lines[lines.index(titles[0]) :] if line[:3].strip()}
    arguments = get_arguments(recipe)
    assert {*arguments.__dataclass_fields__} - arguments.unused_keys(arguments()) <= {*listed}
    assert listed["output_dir"] == "required" and listed["seed"] == "42" and "do_predict" not in listed
    assert not {*arguments.PLAN.closed} & {*listed}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_reads_the_keys_that_are_listed_and_has_its_name(recipe):
    assert get_recipe(recipe).arguments is get_arguments(recipe) and get_arguments(recipe).recipe == recipe


@pytest.mark.parametrize("is_terminal", [True, False])
def test_predicting_from_a_terminal_says_that_it_waits(is_terminal, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: is_terminal))
    monkeypatch.setattr("tasks.commands.predict.classify", lambda options: None)
    (tmp_path / "config.json").write_text('{"model_type": "paddle_rope_classification"}')
    assert main(["predict", str(tmp_path)]) == 0
    expected = "waiting for texts on standard input, one a line; Ctrl-D ends them, and --input FILE reads a file\n"
    assert capsys.readouterr().err == (expected if is_terminal else "")
