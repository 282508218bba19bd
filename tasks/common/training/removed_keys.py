"""Keys of configurations that are gone, since what they did did not help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddle_rope.roformer import removed
from tasks.common.errors import InputError

# Key -> the values with which it does nothing: the configurations of unfinished runs have all keys.
KEYS = {**removed.OPTIONS, "join_share": (None, 0), "join_characters": (None,)}


def without_removed_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in today's keys and values; raises InputError where one that was removed is in use."""
    try:
        return removed.without_removed(config, KEYS)
    except removed.RemovedOption as error:
        raise InputError(f"configuration: {error}") from None
