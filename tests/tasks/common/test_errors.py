"""Errors and texts of users, as a terminal may show them."""

import pickle
from pathlib import Path

import pytest

from paddle_rope import CharTokenizer
from tasks.common.errors import EXIT_BAD_INPUT, MOST_CHARACTERS, InputError, exit_on_input_error, visible

ORDERS = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"
KEPT = "占比% 👩‍🔬\u3000\u00a0 é/\"' \\x1b"


@pytest.mark.parametrize(
    "text, kept, shown",
    [
        (ORDERS, "", r"\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"),
        ("a\nb\tc\x1b", "\n\t", "a\nb\tc\\x1b"),
        (KEPT, "", KEPT),
    ],
)
def test_what_a_terminal_obeys_becomes_an_escape(text, kept, shown):
    assert visible(text, kept) == shown


def test_an_error_is_one_visible_line_with_its_place_and_its_remedy():
    for make in (InputError, lambda message: pickle.loads(pickle.dumps(InputError(message)))):
        assert str(make(f"a\n{ORDERS}: no such file")) == f"a\\n{visible(ORDERS)}: no such file"
    message = str(InputError(f"data.json:3: {'9' * 100_000}; write a number"))
    assert len(message) == MOST_CHARACTERS
    assert message.startswith("data.json:3: 999") and message.endswith("999; write a number")


def denied(*_, **__):
    raise PermissionError(13, "Permission denied", "somewhere")


@pytest.mark.parametrize(
    "error, status, said",
    [
        (InputError("no file"), EXIT_BAD_INPUT, "error: no file\n"),
        (PermissionError(13, "Permission denied", "somewhere"), EXIT_BAD_INPUT, "error: somewhere: no permission"),
        (MemoryError(), EXIT_BAD_INPUT, "error: not enough memory"),
        (RuntimeError("Status Message: std::bad_alloc"), EXIT_BAD_INPUT, "error: not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
    ids=repr,
)
def test_a_command_ends_in_one_line(error, status, said, capsys):
    @exit_on_input_error
    def main(words):
        raise error

    assert main([]) == status
    out, told = capsys.readouterr()
    assert told.startswith(said) and told.count("\n") == 1 and out == ""


def test_a_defect_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        exit_on_input_error(lambda words: 1 / 0)([])


def test_a_vocabulary_that_may_not_be_read_is_not_called_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ValueError, match=r"vocab.txt: cannot be read \(Permission denied\)"):
        CharTokenizer.from_vocab_file(tmp_path / "vocab.txt")
