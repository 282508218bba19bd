"""Examples of matching: pairs and triples of texts."""

from __future__ import annotations

from typing import NamedTuple

# What is to be learned: whether two texts match, how much they do, which of two texts is closer to a third.
PAIRS, GRADES, TRIPLES = TASKS = ("pairs", "grades", "triples")


class Example(NamedTuple):
    """Two texts, or a text A and its candidates B and C.

    Attributes:
        texts: tuple of two or three strings.
        label: of a pair 0 or 1, or a grade; of a triple 1 where the first candidate is closer and 0 where the second
            is. None where it is not known.
        where: "path:line".
    """

    texts: tuple
    label: float | None
    where: str

    @property
    def text(self):
        """The first text: examples that have it in common stay on one side where data are split."""
        return self.texts[0]


def task_of(examples):
    """One of ``TASKS``: what labeled examples teach."""
    if len(examples[0].texts) == 3:
        return TRIPLES
    return PAIRS if all(example.label in (0, 1) for example in examples) else GRADES
