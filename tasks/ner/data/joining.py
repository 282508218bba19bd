"""Neighboring texts of a file as one: for training on longer texts than the file has, and to measure on such."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.ner.examples import Entity, Example, make_example


def join(examples: Sequence[Example]) -> Example:
    """Texts one after the other, as sentences stand in a document, with their entities; ``where`` is that of the first.

    Nothing stands between them, but a space where an ASCII letter or digit stands on either side: two words or numbers
    would become one there.
    """
    parts: list[str] = []
    entities: list[Entity] = []
    start = 0
    for example in examples:
        space = _space_between(parts[-1] if parts else "", example.text)
        start += len(space)
        entities += [entity._replace(start=entity.start + start, end=entity.end + start) for entity in example.entities]
        parts += [space, example.text]
        start += len(example.text)
    return make_example("".join(parts), entities, examples[0].where)


def group_neighbors(examples: Sequence[Example], length_of) -> list[list[Example]]:
    """Cut a list of examples into stretches of neighbors.

    Args:
        examples: in the order of their file.
        length_of: function of the first example of a stretch: the characters that the stretch has at most when it is
            joined. The first is in it, whatever its length.
    """
    groups: list[list[Example]] = []
    left = 0
    for example in examples:
        needed = len(example.text) + len(_space_between(groups[-1][-1].text if groups else "", example.text))
        if groups and needed <= left:
            groups[-1].append(example)
            left -= needed
        else:
            groups.append([example])
            left = length_of(example) - len(example.text)
    return groups


def join_share_of(examples: Sequence[Example], share: float, characters: int, seed: int) -> list[Example]:
    """A share of the examples, joined to texts of many lengths, and the others as they are.

    The file is cut into stretches of neighbors, each of a length that is drawn evenly between that of its first text
    and ``characters``. Stretches are drawn until they hold the share, and joined. Order is that of the file.

    Args:
        examples: the training texts.
        share: of the examples that stand in joined texts, 0 .. 1.
        characters: no joined text has more.
        seed: the same one gives the same texts.
    """
    random = np.random.RandomState(seed)
    groups = group_neighbors(
        examples, lambda first: random.randint(len(first.text), max(len(first.text), characters) + 1)
    )
    chosen: set[int] = set()
    count = 0
    for number in random.permutation(len(groups)):
        if count >= share * len(examples):
            break
        chosen.add(number)
        count += len(groups[number])
    made: list[Example] = []
    for number, group in enumerate(groups):
        made += [join(group)] if number in chosen else group
    return made


def _space_between(before: str, after: str) -> str:
    ends = before[-1:] + after[:1]
    return " " if len(ends) == 2 and ends.isascii() and ends.isalnum() else ""
