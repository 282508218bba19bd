"""The command line: standard streams, and one clear line for each mistake of a user."""

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

from tests.helpers.verbs import verb

REPOSITORY = Path(__file__).resolve().parents[3]
inspect_data = verb("inspect")


@pytest.fixture
def train_fails(fails, config_file):
    """Training with these words fails; the message."""
    return lambda *words: fails(train_ner, config_file, "--output_dir", "out/run", *words)


def test_a_process_with_bad_input_ends_with_status_2_and_one_line(tmp_path, config_file):
    words = [config_file, "--output_dir", tmp_path / "run", "--train_file", "missing"]
    done = subprocess.run(
        [sys.executable, REPOSITORY / "tools/train_ner.py", *words],
        capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: missing: no such file") and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", sorted((REPOSITORY / "tools").glob("*.sh")), ids=lambda path: path.name)
def test_a_shell_script_is_free_of_syntax_errors(script):
    assert subprocess.run(["bash", "-n", script], capture_output=True).returncode == 0


# ---- standard streams


@pytest.mark.parametrize("words", [[], ["--input", "-", "--output", "-"]], ids=["default", "dash"])
def test_standard_streams_give_the_same_as_files_in_any_directory_and_locale(
    trained, predict, corpus, tmp_path, monkeypatch, words
):
    texts = "".join(record["text"] + "\n" for record in corpus.dev_records[:4]) + "\n"
    expected = predict(texts)
    given, found = (io.TextIOWrapper(io.BytesIO(content), encoding="ascii") for content in (texts.encode("utf-8"), b""))
    monkeypatch.setattr(sys, "stdin", given)
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.chdir(shutil.copytree(trained.model, tmp_path / "elsewhere"))
    assert predict_ner.main([".", "--device", "cpu", *words]) == 0
    found.flush()
    printed = found.buffer.getvalue().decode("utf-8")
    assert [json.loads(line) for line in printed.splitlines()] == expected
    assert corpus.dev_records[0]["text"] in printed  # no \u escapes


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


# ---- data

TOO_LONG = '{"text": "%s", "label": {"person": {"a": [[0, 0]]}}}\n' % ("a" * 65)
UNLABELED = '{"text": "ab", "label": {}}\n'
TRAIN, EVALUATE, PREDICT = ("train_file", "dev_file", "test_file"), "evaluate", "predict"


@pytest.mark.parametrize(
    "content, tools, message",
    [
        ("", (*TRAIN, EVALUATE, PREDICT), "data:1: the "),
        ('{"text": "ab", "label": {}}\n{"text": \n', (*TRAIN, EVALUATE, PREDICT), "data:2: "),
        ('{"text": "ab", "label": {"person": {"b": [[0, 0]]}}}\n', (*TRAIN, EVALUATE), "data:1: span [0, 0] holds 'a'"),
        ("甲 O\n乙 Q-PER\n", (*TRAIN, EVALUATE), "data:2: unknown tag 'Q-PER'"),
        (b"a\n\xff\n", (*TRAIN, EVALUATE, PREDICT), "data:2: not UTF-8"),
        (TOO_LONG, ("train_file",), "data:1: 1 of 1 training texts have more characters than max_characters 64"),
        (UNLABELED, ("train_file", "dev_file", EVALUATE), "data: no entity is labeled"),
        ('[{"text": "甲"}]', (EVALUATE,), 'data:1: no "entities"'),
        ("今天天气很好\n明天\n", (EVALUATE,), "data:1: no tag in '今天天气很好'"),
        ('{"text": "a"}\n{"txt": "b"}\n', (PREDICT,), 'data:2: there is no "text"'),
        (None, (*TRAIN, EVALUATE, PREDICT), "data: no such file"),
    ],
)
def test_bad_data_are_one_line_with_its_place_and_leave_all_files_as_they_are(
    train_fails, fails, trained, tmp_path, content, tools, message
):
    (tmp_path / "old").write_text("old\n")
    if content is not None:
        (tmp_path / "data").write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    calls = {key: (train_fails, f"--{key}", "data") for key in TRAIN}
    calls[EVALUATE] = (fails, evaluate_ner, trained.model, "data", "--output", "old")
    calls[PREDICT] = (fails, predict_ner, trained.model, "--input", "data", "--output", "old")
    for tool in tools:
        call, *words = calls[tool]
        assert call(*words).startswith(message), tool


# ---- output, devices and sizes


@pytest.mark.parametrize("output, message", [("no/file", "no/file: cannot be written"), (".", ".: is a folder")])
def test_an_output_that_cannot_be_written_is_an_error_before_the_work(
    fails, trained, corpus, monkeypatch, output, message
):
    monkeypatch.setattr("tasks.common.predictor.load_model", lambda *_: pytest.fail("the model has been loaded"))
    assert fails(evaluate_ner, trained.model, corpus.dev, "--output", output).startswith(message)
    assert fails(predict_ner, trained.model, "--input", corpus.dev, "--output", output).startswith(message)


@pytest.mark.parametrize("tool, option", [(predict_ner, "--input"), (evaluate_ner, None)])
def test_wrong_devices_and_sizes_are_errors_of_prediction_and_evaluation(fails, trained, corpus, tool, option):
    words = [tool, trained.model, *([option] if option else []), corpus.dev]
    assert fails(*words, "--device", "abacus").startswith("--device abacus: not usable here")
    assert fails(*words, "--batch_size", "0").startswith("--batch_size 0: must be 1 or more")
    assert "-1: must be 1 or more" in fails(*words, "--max_tokens", "-1")
    assert "--batch_size" in fails(*words, "--batch_size", "x")
    assert "required: " in fails(tool)


def test_an_input_is_not_written_over(fails, trained, corpus, tmp_path):
    shutil.copy(corpus.dev, tmp_path / "gold.jsonl")
    output = ["--output", "./gold.jsonl"]
    assert "is the input" in fails(predict_ner, trained.model, "--input", "gold.jsonl", *output)
    assert "is an input" in fails(evaluate_ner, trained.model, "gold.jsonl", *output)
    assert "is an input" in fails(inspect_data, "gold.jsonl", *output)


def test_a_page_is_missed_with_a_message_where_the_reader_leaves_early(fails, trained, corpus, monkeypatch):
    def reader_left(*arguments):
        raise SystemExit(0)

    monkeypatch.setattr("tasks.ner.prediction.output_formats.PredictionWriter.write", reader_left)
    message = fails(predict_ner, trained.model, "--input", corpus.dev, "--html", "page.html", "--device", "cpu")
    assert message.startswith("page.html: not written")


@pytest.mark.usefixtures("without_pictures")
def test_a_folder_of_another_run_is_not_overwritten_but_an_empty_one_is_taken(train_fails, train, few_texts, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "metrics.json").write_text("{}")
    assert train_fails("--output_dir", "old").startswith("old: is not empty")
    (tmp_path / "run").mkdir()
    assert train(tmp_path / "run", train_file=few_texts.train, num_train_epochs=0.1).model.is_dir()
