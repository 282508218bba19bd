"""The command line: options, standard streams, and one clear line for what a user can get wrong."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import evaluate_ner
import predict_ner
import pytest
import train_ner

from tasks.common.cli.streams import standard_output
from tests.helpers.verbs import verb

inspect_data = verb("inspect")

REPOSITORY = Path(__file__).resolve().parents[3]


def run(tool, *words, **options):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, REPOSITORY / "tools" / f"{tool}.py", *words]
    return subprocess.run(command, capture_output=True, env=environment, timeout=120, **options)


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return name

    return write


@pytest.fixture
def train_fails(fails, config_file):
    """Training with these words fails; the message."""
    return lambda *words: fails(train_ner, config_file, "--output_dir", "out/run", *words)


# ---- as processes


def test_process_with_bad_input_ends_with_status_2_and_one_line_without_a_traceback(tmp_path, config_file):
    done = run("train_ner", config_file, "--output_dir", tmp_path / "run", "--train_file", "missing", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode() == "error: missing: no such file; check the path\n"
    assert done.stdout == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", sorted((REPOSITORY / "tools").glob("*.sh")), ids=lambda path: path.name)
def test_shell_script_is_free_of_syntax_errors(script):
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ---- standard streams


def test_standard_streams_give_the_same_as_files_in_any_directory_and_locale(
    trained, predict, corpus, tmp_path, monkeypatch
):
    texts = "".join(record["text"] + "\n" for record in corpus.dev_records[:4]) + "\n"
    expected = predict(texts)
    given, found = (io.TextIOWrapper(io.BytesIO(content), encoding="ascii") for content in (texts.encode("utf-8"), b""))
    monkeypatch.setattr(sys, "stdin", given)
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.chdir(tmp_path)
    assert predict_ner.main([str(trained.model), "--device", "cpu"]) == 0
    found.flush()
    assert [json.loads(line) for line in found.buffer.getvalue().decode("utf-8").splitlines()] == expected


def test_dash_stands_for_standard_input_and_output(trained, predict, monkeypatch, capsys):
    text = "王明在青川市。\n"
    expected = predict(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8")), encoding="ascii"))
    assert predict_ner.main([str(trained.model), "--input", "-", "--output", "-", "--device", "cpu"]) == 0
    printed = capsys.readouterr().out
    assert [json.loads(line) for line in printed.splitlines()] == expected
    assert "青川" in printed  # not \u escapes


def test_reader_that_leaves_early_is_no_error(monkeypatch):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        with pytest.raises(SystemExit) as ended, standard_output() as output:
            output.write("a" * 100000)
            output.flush()
        monkeypatch.undo()
    assert ended.value.code == 0


def test_help_of_training_names_the_configuration(capsys):
    assert train_ner.main(["--help"]) == 0
    assert "paddle-rope train CONFIG.yaml [--key value ...]" in capsys.readouterr().out


# ---- training: the configuration


def test_training_without_a_configuration_shows_the_usage(fails):
    assert "usage: paddle-rope train CONFIG.yaml" in fails(train_ner)
    assert fails(train_ner, "--seed", "1").startswith("no 'train_file': name it in the configuration file or with --tr")


@pytest.mark.parametrize(
    "words, message",
    [
        (["--sede", "1"], "unknown key 'sede'; did you mean 'seed'?"),
        (["--attension=linear"], "unknown key 'attension'; did you mean 'attention'?"),
        (["stray"], "unexpected argument 'stray'; write options as --key value"),
        (["--train_file="], "no 'train_file': name it in the configuration file or with --train_file PATH"),
        (["--dev_fraction=1"], "dev_fraction must be at least 0 and less than 1"),
        (["--output_dir="], "no 'output_dir': name it"),
        (["--num_train_epochs", "many"], "num_train_epochs must be a number, got 'many'"),
        (["--hidden_size", "3.5"], "hidden_size must be a whole number, got '3.5'"),
        (["--texts", "more.txt"], "texts without masked_lm_epochs"),
        (
            ["--texts", "more.txt", "--masked_lm_epochs", "many"],
            "masked_lm_epochs must be a whole number, got 'many'",
        ),
        (["--texts", "more.txt", "--masked_lm_epochs", "1"], "more.txt: no such file"),
        (["--fp16", "maybe"], "fp16 must be true or false"),
        (["--fp16"], "fp16 needs a GPU"),
        (["--lr_scheduler_type", "zigzag"], "lr_scheduler_type must be one of linear, "),
        (["--attention", "hard"], "attention must be one of softmax, linear, window"),
        (["--span_head", "hard"], "span_head must be one of efficient, dense, got 'hard'"),
        (["--num_attention_heads", "3"], "does not split into 3 heads of even size"),
        (["--num_attention_heads", "32"], "does not split into 32 heads of even size"),
        (["--head_size", "15"], "positive even number"),
        (["--head_size", "-2"], "head_size must be an integer of 1 to 65,536, got -2"),
        (["--num_hidden_layers", "0"], "num_hidden_layers must be an integer of 1 to"),
        (["--max_characters", "0"], "max_characters must be greater than 0, got 0"),
        (["--max_span_length", "0"], "max_span_length must be an integer of 1 to"),
        (["--hidden_dropout_prob", "1"], "hidden_dropout_prob must be a number of at least 0 and less than 1, got 1"),
        (["--attention_probs_dropout_prob", "-0.1"], "attention_probs_dropout_prob must be a number of at least 0"),
        (["--num_train_epochs", "0"], "num_train_epochs must be greater than 0"),
        (["--per_device_train_batch_size", "0"], "per_device_train_batch_size must be greater than 0"),
        (["--gradient_accumulation_steps", "0"], "gradient_accumulation_steps must be greater than 0"),
        (["--logging_steps", "0"], "logging_steps"),
        (["--dataloader_num_workers", "100000"], "dataloader_num_workers must be from 0 to 64, got 100000"),
        (["--dataloader_num_workers", "-1"], "dataloader_num_workers must be from 0 to 64, got -1"),
        (["--learning_rate", "-1"], "learning_rate must be greater than 0, got -1.0"),
        (["--learning_rate", "nan"], "learning_rate must be greater than 0, got nan"),
        (["--seed", "-1"], "seed must be from 0 to 4294967295, got -1"),
        (["--seed", "4294967296"], "seed must be from 0 to 4294967295"),
        (
            ["--save_strategy", "no"],
            "key 'save_strategy' of PaddleNLP does nothing here: a checkpoint is written",
        ),
        (["--logging_dir", "log"], "key 'logging_dir' cannot be set"),
        (["--save_steps", "50"], "key 'save_steps' of PaddleNLP does nothing here: a checkpoint is written at each"),
        (["--eval_steps", "50"], "key 'eval_steps' cannot be set: the recipe evaluates each epoch"),
        (["--load_best_model_at_end", "false"], "keeps the best by dev f1, or the last with keep_best false"),
        (["--sharding", "stage1"], "key 'sharding' of PaddleNLP does nothing here: each process holds the whole"),
        (["--past_index", "1"], "unknown key 'past_index'"),
        (["--foo", "1"], "unknown key 'foo'; paddle-rope train CONFIG.yaml --help lists the keys"),
        (["--batch_size", "1"], "did you mean 'per_device_eval_batch_size' or 'per_device_train_batch_size'?"),
        (
            ["--resume_from_checkpoint", "x"],
            "key 'resume_from_checkpoint' of PaddleNLP does nothing here: write --resume OUTPUT_DIR",
        ),
        (["--device", "abacus"], "--device abacus: not usable here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_configuration_is_one_line_and_makes_nothing(train_fails, words, message):
    assert message in train_fails(*words)


def test_device_that_this_paddle_is_not_built_for_is_an_error(train_fails, monkeypatch):
    monkeypatch.setattr("paddle.is_compiled_with_cuda", lambda: False)
    assert train_fails("--device", "gpu").startswith("--device gpu: this paddle is built for CPU; use --device cpu or ")


@pytest.mark.parametrize(
    "content, line, message",
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "broken YAML"),
        ("- a\n", 1, "not a mapping; write one 'key: value' a line"),
        ("word\n", 1, "not a mapping"),
    ],
)
def test_configuration_file_that_is_no_mapping_is_an_error_with_its_line(fails, write, content, line, message):
    assert fails(train_ner, write("bad.yaml", content)).startswith(f"bad.yaml:{line}: {message}")


def test_missing_configuration_file_is_an_error(fails):
    assert fails(train_ner, "no.yaml").startswith("no.yaml: no such configuration file; ")


# ---- training: the output folder


def test_folder_of_another_run_is_not_overwritten(train_fails, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "metrics.json").write_text("{}")
    message = train_fails("--output_dir", "old")
    assert message == "old: already holds another run; give another --output_dir or remove the folder"


def test_output_folder_that_cannot_be_made_is_an_error(train_fails, write):
    write("file", "content")
    assert train_fails("--output_dir", "file") == "file: is a file; give another --output_dir"
    assert train_fails("--output_dir", "file/run").startswith("file/run: cannot be made ")


def test_folder_that_is_empty_is_taken(train, tmp_path):
    (tmp_path / "run").mkdir()
    assert train(tmp_path / "run", num_train_epochs=0.1).model.is_dir()


# ---- data

BAD_DATA = {
    "empty file": ("", ":1: the file is empty"),
    "broken JSON": ('{"text": "ab", "label": {}}\n{"text": \n', ":2: broken JSON"),
    "span out of range": ('{"text": "ab", "label": {"person": {"b": [[1, 2]]}}}\n', ":1: span [1, 2]"),
    "span of other text": ('{"text": "ab", "label": {"person": {"b": [[0, 0]]}}}\n', ":1: span [0, 0] holds 'a'"),
    "unknown tag": ("甲 O\n乙 Q-PER\n", ":2: unknown tag 'Q-PER'"),
    "not UTF-8": ("甲 O\n".encode("gb18030"), ":1: not UTF-8"),
    "text too long": (
        '{"text": "%s", "label": {"person": {"a": [[0, 0]]}}}\n' % ("a" * 65),
        ":1: 1 of 1 training texts have more characters than max_characters 64",
    ),
}


@pytest.mark.parametrize("content, message", BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data_is_one_line_with_its_place_and_makes_nothing(train_fails, fails, write, trained, content, message):
    name = write("data", content)
    of_training_alone = message == BAD_DATA["text too long"][1]
    for key in ("train_file",) if of_training_alone else ("train_file", "dev_file", "test_file"):
        assert train_fails(f"--{key}", name).startswith(name + message)
    if of_training_alone:
        return
    assert fails(evaluate_ner, trained.model, name, "--output", "scores.json").startswith(name + message)


@pytest.mark.parametrize("key", ["train_file", "dev_file"])
def test_data_without_any_entity_cannot_train_or_choose(train_fails, write, key):
    name = write("data", '{"text": "ab", "label": {}}\n')
    assert train_fails(f"--{key}", name) == "data: no entity is labeled in it; give data with entities"


def test_missing_file_is_an_error_of_every_tool(train_fails, fails, trained):
    message = "nope: no such file; check the path"
    assert train_fails("--test_file", "nope") == message
    assert fails(evaluate_ner, trained.model, "nope", "--output", "scores.json") == message
    assert fails(predict_ner, trained.model, "--input", "nope", "--output", "found.jsonl") == message


def test_type_at_evaluation_that_the_model_does_not_know_is_told_and_counts_as_missed(tmp_path, trained, capsys):
    data, output = tmp_path / "data", tmp_path / "scores.json"
    data.write_text("甲 O\n\n乙 B-animal\n", encoding="utf-8")
    assert evaluate_ner.main([str(trained.model), str(data), "--output", str(output)]) == 0
    note = f"note: {data} has types that the model does not have, which count as missed: animal"
    assert note in capsys.readouterr().out.splitlines()
    scores = json.loads(output.read_text(encoding="utf-8"))
    assert scores["per_type"]["animal"] == {
        **dict.fromkeys(("precision", "recall", "f1"), 0), "support": 1, "predicted": 0, "correct": 0,
    }  # fmt: skip
    assert scores["errors"]["missed"] == scores["support"] == 1


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"text": "甲", "label": {}}\n', "data: no entity is labeled in it; give data with entities"),
        ("甲 O\n乙 O\n", "data: no entity is labeled in it; give data with entities"),
        ('[{"text": "甲", "entities": []}]', "data: no entity is labeled in it; give data with entities"),
        ('[{"text": "甲"}]', 'data:1: no "entities", the file is unlabeled; give labeled data ('),
        ("今天天气很好\n明天\n", "data:1: no tag in '今天天气很好'; write one character, one space or tab and its "),
    ],
)
def test_evaluation_on_unlabeled_data_is_an_error(fails, write, trained, content, message):
    assert fails(evaluate_ner, trained.model, write("data", content), "--output", "scores.json").startswith(message)


@pytest.mark.parametrize(
    "content, message",
    [
        ("", ":1: the input is empty"),
        ('{"text": "a"}\n{"txt": "b"}\n', ':2: there is no "text"'),
        (b"a\n\xff\n", ":2: not UTF-8"),
    ],
)
def test_bad_input_of_prediction_is_one_line_with_its_place(fails, write, trained, content, message):
    name = write("data", content)
    words = (predict_ner, trained.model, "--input", name)
    assert fails(*words, "--output", "found.jsonl").startswith(name + message)
    assert fails(*words).startswith(name + message)


def test_longer_texts_are_predicted_and_scored_with_larger_max_tokens(write, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("data", json.dumps({"text": "甲" * 90, "label": {"person": {"甲": [[0, 0]]}}}) + "\n")
    options = [str(trained.model), "--max_tokens", "90", "--output", "out"]
    assert predict_ner.main([*options, "--input", "data"]) == 0
    assert json.loads((tmp_path / "out").read_text(encoding="utf-8"))["text"] == "甲" * 90
    assert evaluate_ner.main([options[0], "data", *options[1:]]) == 0
    assert json.loads((tmp_path / "out").read_text(encoding="utf-8"))["support"] == 1


@pytest.mark.parametrize("output, message", [("no/file", "no/file: cannot be written ("), (".", ".: is a folder; ")])
def test_output_that_cannot_be_written_is_an_error_before_the_work(
    fails, trained, corpus, monkeypatch, output, message
):
    monkeypatch.setattr("tasks.common.predictor.load_model", lambda *_: pytest.fail("the model has been loaded"))
    assert fails(evaluate_ner, trained.model, corpus.dev, "--output", output).startswith(message)
    assert fails(predict_ner, trained.model, "--input", corpus.dev, "--output", output).startswith(message)


def test_failed_prediction_keeps_the_old_output(fails, write, trained):
    write("found.jsonl", "old\n")
    write("data", b"\xff")
    assert "not UTF-8" in fails(predict_ner, trained.model, "--input", "data", "--output", "found.jsonl")


@pytest.mark.parametrize("tool, option", [(predict_ner, "--input"), (evaluate_ner, None)])
def test_wrong_device_and_sizes_are_errors_of_prediction_and_evaluation(fails, trained, corpus, tool, option):
    words = [tool, trained.model, *([option] if option else []), corpus.dev]
    assert fails(*words, "--device", "abacus").startswith("--device abacus: not usable here")
    assert fails(*words, "--batch_size", "0") == "--batch_size 0: must be 1 or more"
    assert "-1: must be 1 or more" in fails(*words, "--max_tokens", "-1")


@pytest.mark.parametrize(
    "tool, words, said",
    [
        (evaluate_ner, ["model"], "the following arguments are required: DATA"),
        (predict_ner, [], "the following arguments are required: MODEL_DIR"),
        (predict_ner, ["m", "--batch_size", "x"], "argument --batch_size: invalid int value: 'x'"),
    ],
)
def test_missing_or_malformed_arguments_point_to_the_help(fails, tool, words, said):
    message = fails(tool, *words)
    assert message.startswith(said) and message.endswith("--help")


def test_output_on_the_input_is_refused(fails, trained, tmp_path):
    (tmp_path / "texts").write_text("王明在青川市。\n", encoding="utf-8")
    message = fails(predict_ner, trained.model, "--input", "texts", "--output", "./texts")
    assert message == "./texts: is the input too; give another --output"


@pytest.mark.parametrize("tool", [evaluate_ner, inspect_data])
def test_scores_and_findings_are_not_written_over_the_data(fails, trained, corpus, tmp_path, tool):
    shutil.copy(corpus.dev, tmp_path / "gold.jsonl")
    before = (tmp_path / "gold.jsonl").read_bytes()
    words = [trained.model] if tool is evaluate_ner else []
    assert "is an input too" in fails(tool, *words, "gold.jsonl", "--output", "./gold.jsonl")
    assert (tmp_path / "gold.jsonl").read_bytes() == before


def test_page_is_missed_with_a_message_where_the_reader_leaves_early(fails, trained, corpus, tmp_path, monkeypatch):
    def reader_left(*arguments):
        raise SystemExit(0)

    monkeypatch.setattr("tasks.ner.prediction.output_formats.PredictionWriter.write", reader_left)
    message = fails(predict_ner, trained.model, "--input", corpus.dev, "--html", "page.html", "--device", "cpu")
    assert message.startswith("page.html: not written")


def test_errors_are_shown_where_the_locale_lacks_their_characters(trained, tmp_path, monkeypatch):
    (tmp_path / "data.jsonl").write_text('{"text": "👍在青川市", "label": [[2, 5, "place"]]}\n', encoding="utf-8")
    words = (trained.model, tmp_path / "data.jsonl", "--device", "cpu", "--output", tmp_path / "scores.json")
    printed = {name: io.TextIOWrapper(io.BytesIO(), encoding="gbk") for name in ("stdout", "stderr")}
    for name, stream in printed.items():
        monkeypatch.setattr(sys, name, stream)
    assert evaluate_ner.main(list(map(str, words))) == 0
    for stream in printed.values():
        stream.flush()
    assert printed["stderr"].buffer.getvalue() == b"" and printed["stdout"].buffer.getvalue() != b""
    assert (tmp_path / "scores.json").is_file()


def test_model_folder_can_be_moved(trained, predict, tmp_path):
    shutil.copytree(trained.model, tmp_path / "elsewhere")
    assert predict("王明在青川市。\n", tmp_path / "elsewhere") == predict("王明在青川市。\n")
