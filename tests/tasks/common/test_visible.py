"""Texts of users on a terminal, and in messages."""

import pickle

import pytest

from tasks.common.errors import MOST_CHARACTERS, InputError, visible

ORDERS = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"


def test_what_a_terminal_obeys_becomes_an_escape():
    assert visible(ORDERS) == r"\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x00\x7f\u2028\udc80"
    assert visible("a\nb\tc\x1b", "\n\t") == "a\nb\tc\\x1b"


def test_all_that_is_seen_stays():
    text = "占比% 👩‍🔬\u3000\u00a0 é/\"' \\x1b"
    assert visible(text) == text


@pytest.mark.parametrize("make", [InputError, lambda message: pickle.loads(pickle.dumps(InputError(message)))])
def test_an_error_is_one_visible_line(make):
    assert str(make(f"a\n{ORDERS}: no such file")) == f"a\\n{visible(ORDERS)}: no such file"


def test_a_long_error_keeps_its_place_and_its_remedy():
    message = str(InputError(f"data.json:3: {'9' * 100_000}; write a number"))
    assert len(message) == MOST_CHARACTERS
    assert message.startswith("data.json:3: 999") and message.endswith("999; write a number")
