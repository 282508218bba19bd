"""Standard output and error of a command."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tqdm import tqdm

from tasks.common.cli.streams import Output, on_terminal, standard_output
from tasks.common.errors import InputError
from tasks.common.reports.tables import print_score_rows

REPOSITORY = Path(__file__).resolve().parents[4]
CONVERT = """
import sys
from tasks.commands.main import main
sys.exit(main(sys.argv[1:]))
"""
RECORD = '{"text": "王明", "label": {"name": {"王明": [[0, 1]]}}}\n'
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
    assert status == 2
    assert "types: \\x1b[31mred\\r\ta\\x9b2J\n" in printed and "dev \\x1b]0;x\\x07\n" in printed
    assert "\rread \\x1b[2J: 100%" in printed  # the bar begins its line anew
    assert "of \\x1b[8m" in printed and "[red]a\\x1b[5m" in printed
    assert printed.endswith("error: no file \\x1b[1m\n")
    assert not [order for order in ("\x1b[31m", "\x1b]", "\x1b[2J", "\x1b[8m", "\x1b[5m", "\x9b") if order in printed]


def test_bars_below_each_other_go_up_and_down():
    written = Terminal()
    Output(written, "standard error").write("\x1b[A\x1b[A")
    assert written.getvalue() == "\x1b[A\x1b[A"


def test_data_are_written_as_they_are(monkeypatch):
    def main(argv):
        with standard_output() as file:
            file.write("a\x1b[31m\r\n")
        return 0

    assert shown_by(main, monkeypatch) == (0, "a\x1b[31m\r\n")


@pytest.fixture
def converted(tmp_path):
    """Run ``convert`` in a process whose streams a shell has prepared: its status and standard error."""
    (tmp_path / "data.jsonl").write_text(RECORD * 20_000, encoding="utf-8")

    def converted(redirected, target="-"):
        words = f"'{sys.executable}' -c '{CONVERT}' convert data.jsonl {target} --to cluener {redirected}"
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, env=environment)
        return done.returncode, done.stderr

    return converted


def test_results_for_a_closed_output_are_refused_at_once(converted):
    status, error = converted(">&-")
    assert (status, error.count("\n")) == (2, 1) and error.startswith("error: standard output is closed")


def test_notes_for_closed_streams_go_nowhere_and_not_into_a_file(converted, tmp_path):
    assert converted(">&- 2>&-", "out.jsonl") == (0, "")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == RECORD * 20_000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("target", ["-", "out.jsonl"])
def test_an_output_without_room_is_one_line(converted, target):
    status, error = converted(">/dev/full", target)
    assert (status, error.count("\n")) == (2, 1) and "cannot be written (No space left on device)" in error


def test_a_reader_that_leaves_ends_it_in_silence(converted):
    assert converted("| true; exit ${PIPESTATUS[0]}") == (0, "")


def test_a_line_for_a_reader_that_has_left_is_no_traceback(converted):
    assert converted("nonsense 2>&1 | true; exit ${PIPESTATUS[0]}") in [(1, ""), (2, "")]
