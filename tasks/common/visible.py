"""Texts of users as a terminal may show them: what it would obey, or hide, stands there as an escape."""

import re

# Control characters (also those that begin escape sequences), line separators, marks and overrides of the direction of
# writing, halves of surrogate pairs.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MOST_CHARACTERS = 1000  # of a message
_LAST_CHARACTERS = 300  # which often say what to do


def visible(text: str, kept: str = "") -> str:
    """``text`` with escapes such as ``\\x1b`` for what a terminal obeys, but for the characters ``kept``."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in kept else repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """``text`` as one visible line; of a long one the middle is left out."""
    line = visible(text)
    if len(line) <= MOST_CHARACTERS:
        return line
    cut = " [...] "
    return line[: MOST_CHARACTERS - _LAST_CHARACTERS - len(cut)] + cut + line[-_LAST_CHARACTERS:]
