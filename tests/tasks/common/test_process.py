"""The working process: errors and texts of users as a terminal may show them, standard output and error, a home folder
that can be written, the device, and commands that can be pasted from messages."""

import io
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import paddle
import pytest
from tqdm import tqdm

from paddle_rope import CharTokenizer
from paddle_rope.tasks.common.errors import EXIT_BAD_INPUT, MOST_CHARACTERS, InputError, exit_status, visible
from paddle_rope.tasks.common.output import Output, on_terminal, standard_output
from paddle_rope.tasks.common.process import check_device, choose_device, ensure_home, own_command
from paddle_rope.tasks.common.reports.tables import print_score_rows
from tests.conftest import REPOSITORY

ORDERS = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"
KEPT = "占比% 👩‍🔬\u3000\u00a0 é/\"' \\x1b"


@pytest.mark.parametrize("text, kept, shown", [
    (ORDERS, "", r"\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"),
    ("a\nb\tc\x1b", "\n\t", "a\nb\tc\\x1b"),
    (KEPT, "", KEPT),
])  # fmt: skip
def test_what_a_terminal_obeys_becomes_an_escape(text, kept, shown):
    assert visible(text, kept) == shown


def test_an_error_is_one_visible_line_with_its_place_and_its_remedy():
    for make in (InputError, lambda message: pickle.loads(pickle.dumps(InputError(message)))):
        assert str(make(f"a\n{ORDERS}: no such file")) == f"a\\n{visible(ORDERS)}: no such file"
    message = str(InputError(f"data.json:3: {'9' * 100_000}; write a number"))
    assert len(message) == MOST_CHARACTERS
    assert message.startswith("data.json:3: 999") and message.endswith("999; write a number")


@pytest.mark.parametrize("error, status, said", [
    (InputError("no file"), EXIT_BAD_INPUT, "error: no file\n"),
    (PermissionError(13, "Permission denied", "somewhere"), EXIT_BAD_INPUT, "error: somewhere: Permission denied; ask"),
    (OSError(28, "No space left on device"), EXIT_BAD_INPUT, "error: the output: No space left on device; make room"),
    (OSError(36, "File name too long", "a" * 300), EXIT_BAD_INPUT, f"error: {'a' * 300}: File name too long; give"),
    (MemoryError(), EXIT_BAD_INPUT, "error: not enough memory"),
    (RuntimeError("Status Message: std::bad_alloc"), EXIT_BAD_INPUT, "error: not enough memory"),
    (KeyboardInterrupt(), 130, "interrupted\n"),
], ids=repr)  # fmt: skip
def test_a_command_ends_in_one_line(error, status, said, capsys):
    assert exit_status(Mock(side_effect=error), []) == status
    out, told = capsys.readouterr()
    assert told.startswith(said) and told.count("\n") == 1 and out == ""


def test_a_vocabulary_that_may_not_be_read_is_not_called_missing(tmp_path):
    (tmp_path / "vocab.txt").mkdir()
    with pytest.raises(ValueError, match=r"vocab.txt: cannot be read \(Is a directory\)"):
        CharTokenizer.from_vocab_file(tmp_path / "vocab.txt")


def test_a_gpu_is_refused_before_paddle_is_imported_where_the_installed_one_has_none(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda package: {"paddlepaddle": "3"}[package])
    with pytest.raises(InputError, match="--device gpu:0: this paddle is built for CPU"):
        check_device("gpu:0")
    check_device("cpu")


# ---- standard output and error
CONVERT = "import sys; from paddle_rope.tasks.commands.main import main; sys.exit(main(sys.argv[1:]))"
RECORD = '{"text": "王明", "label": {"name": {"王明": [[0, 1]]}}}\n'
MANY = 3000  # more than a pipe holds
ROW = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1, "predicted": 1}


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def shown_by(main, monkeypatch):
    """The status of a command, and what its standard output and error, one terminal, are given."""
    stream = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream)
        patch.setattr("sys.stderr", stream)
        status = on_terminal(main)([])
        assert sys.stdout is sys.stderr is stream
    return status, stream.getvalue()


def test_names_give_no_orders_to_the_terminal(monkeypatch):
    def main(argv):
        print("types: \x1b[31mred\r", "a\x9b2J", sep="\t")
        tqdm.write("dev \x1b]0;x\x07")
        with tqdm(total=1, desc="read \x1b[2J") as bar:
            bar.update()
        print_score_rows("of \x1b[8m", "type", [("[red]a\x1b[5m", ROW)])
        raise InputError("no file \x1b[1m")

    status, printed = shown_by(main, monkeypatch)
    assert status == 2 and printed.endswith("error: no file \\x1b[1m\n")
    assert "types: \\x1b[31mred\\r\ta\\x9b2J\n" in printed and "dev \\x1b]0;x\\x07\n" in printed
    assert "\rread \\x1b[2J: 100%" in printed  # the bar begins its line anew
    assert "of \\x1b[8m" in printed and "[red]a\\x1b[5m" in printed
    assert not [order for order in ("\x1b[31m", "\x1b]", "\x1b[2J", "\x1b[8m", "\x1b[5m", "\x9b") if order in printed]


def test_bars_go_up_and_data_are_written_as_they_are(monkeypatch):
    written = Terminal()
    Output(written, "standard error").write("\x1b[A\x1b[A")
    assert written.getvalue() == "\x1b[A\x1b[A"

    def main(argv):
        with standard_output() as file:
            file.write("a\x1b[31m\r\n")
        return 0

    assert shown_by(main, monkeypatch) == (0, "a\x1b[31m\r\n")


NO_SPACE = ("cannot be written (No space left on device)", [2])


@pytest.mark.parametrize("words, said, statuses", [
    ("- --to cluener >&-", "error: standard output is closed", [2]),
    ("out.jsonl --to cluener >&- 2>&-", "", [0]),  # notes go nowhere, not into a file
    ("- --to cluener >/dev/full", *NO_SPACE),
    ("out.jsonl --to cluener >/dev/full", *NO_SPACE),
    ("- --to cluener | true; exit ${PIPESTATUS[0]}", "", [0]),  # a reader that leaves
    ("- --nonsense 2>&1 | true; exit ${PIPESTATUS[0]}", "", [1, 2]),
    ("--help | true; exit ${PIPESTATUS[0]}", "", [0, 1]),
])  # fmt: skip
def test_closed_and_full_outputs_end_a_command_in_one_line_or_none(tmp_path, words, said, statuses):
    (tmp_path / "data.jsonl").write_text(RECORD * MANY, encoding="utf-8")
    command = f"'{sys.executable}' -c '{CONVERT}' convert data.jsonl {words}"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode in statuses and said in done.stderr and done.stderr.count("\n") == bool(said)
    if words.startswith("out.jsonl") and statuses == [0]:
        assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == RECORD * MANY


# ---- home folder, device, commands
@pytest.mark.parametrize("home", ["file", "file/home/user", "nowhere", "relative", "usable"])
def test_a_useless_home_is_replaced_until_the_end_of_the_process(home, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "usable").mkdir()
    given, at_end = home if home == "relative" else str(tmp_path / home), []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", given)
    monkeypatch.setattr("atexit.register", at_end.append)
    ensure_home()
    made = Path(os.environ["HOME"])
    if home == "usable":
        assert str(made) == given and list(made.iterdir()) == at_end == []
        return
    assert made.parent == tmp_path and made.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as in_a_copy:
        in_a_copy.setattr(os, "getpid", lambda: 1)
        at_end[0]()
        assert made.is_dir()
    at_end[0]()
    assert not made.exists()


def test_a_gpu_is_taken_where_there_is_one(monkeypatch):
    chosen = []
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    assert choose_device() == choose_device("CPU") == paddle.get_device() == "cpu"
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: True)
    monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(paddle, "set_device", chosen.append)
    assert choose_device() == "gpu" and choose_device("gpu:1") == "gpu:1"
    assert chosen == ["gpu", "gpu:1"]


@pytest.mark.parametrize("name", ["abacus", "gpu", "gpu:0", "cpu:7", ""])
def test_unusable_device_is_an_error_with_the_remedy(monkeypatch, name):
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    with pytest.raises(InputError, match=f"^--device {name}: .*use --device cpu"):
        choose_device(name)
    assert paddle.get_device() == "cpu"


@pytest.mark.parametrize("names, said", [("", "paddle-rope "), ("visualdl visualdl.server.app", "VisualDL")])
def test_commands_run_as_they_are_printed(names, said):
    command = f"{own_command(*names.split())} --version"
    done = subprocess.run(command, shell=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.startswith(said), done.stderr
