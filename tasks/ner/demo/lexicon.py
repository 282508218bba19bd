"""The word lists and sentence templates of the demo corpus, read from ``lexicon.yaml`` and ``templates.yaml``.

Open-class names (given names, place stems, brand stems) are two characters, one from a list of first characters and
one from a list of second characters. A fixed rule, ``split_pairs``, gives each pair to train or to dev, so that each
character occurs in train but no dev pair does. Reserved pairs are in neither part: UNSEEN_SENTENCES uses them.
"""

from pathlib import Path

import yaml


def _read(name: str) -> dict:
    return yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))


def split_pairs(firsts: str, seconds: str, excluded: list[str]) -> tuple[list[str], list[str]]:
    """All pairs of characters as ``(train, dev)`` lists: a fifth of the pairs of each character goes to dev."""
    train, dev = [], []
    for i, first in enumerate(firsts):
        for j, second in enumerate(seconds):
            pair = first + second
            if first != second and pair not in excluded:
                (dev if (i + j) % 5 == 0 else train).append(pair)
    return train, dev


def _open_classes() -> dict[str, dict[str, list[str]]]:
    """dict from ``"train"`` and ``"dev"`` to their ``givens``, ``stems`` and ``brands``."""
    train, dev = {}, {}
    for name, pairs in LEXICON["pairs"].items():
        train[name], dev[name] = split_pairs(**{**pairs, "excluded": LEXICON["reserved"] + pairs["excluded"]})
    singles = LEXICON["single_givens"]
    dev["givens"] += singles[::5]
    train["givens"] += [single for single in singles if single not in singles[::5]]
    return {"train": train, "dev": dev}


LEXICON = _read("lexicon.yaml")
TEMPLATES = _read("templates.yaml")
OPEN_CLASSES = _open_classes()
