"""Stages of pretraining: how long the rows are, how many make a batch, and for how many steps."""

from typing import NamedTuple

from tasks.common.errors import InputError

SHORTEST = 8  # shorter rows have hardly a word between [CLS] and [SEP]


class Stage(NamedTuple):
    """One stage."""

    max_tokens: int  # a row
    batch_size: int  # rows, a process
    steps: int  # updates of the weights

    def __str__(self):
        return "x".join(map(str, self))


KEYS = Stage._fields


def parse_stages(value):
    """The list of :class:`Stage` that a configuration gives: mappings with ``max_tokens``, ``batch_size`` and
    ``steps``, or text such as ``512x8x1000,128x32x500``. Raises InputError for anything else."""
    if not value:
        raise InputError("no 'stages': give a list of max_tokens, batch_size and steps, such as --stages 512x8x1000")
    stages = []
    for number, given in enumerate(value if isinstance(value, list) else str(value).split(","), 1):
        where = f"configuration: stage {number} of stages"
        if isinstance(given, dict):
            if set(given) != set(KEYS):
                raise InputError(f"{where} has the keys {', '.join(map(str, given))}; it takes {', '.join(KEYS)}")
            numbers = [given[key] for key in KEYS]
        else:
            numbers = str(given).strip().split("x")
        words = [str(word).strip() for word in numbers]
        if len(words) != len(KEYS) or not all(word.isascii() and word.isdigit() for word in words):
            raise InputError(f"{where} is {given!r}; write {'x'.join(KEYS)} in numbers, such as 512x8x1000")
        stage = Stage(*map(int, words))
        if stage.max_tokens < SHORTEST or min(stage) < 1:
            raise InputError(f"{where} is {given!r}; max_tokens must be {SHORTEST} or more, the others 1 or more")
        stages.append(stage)
    return stages
