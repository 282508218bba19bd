"""The files of a run: train, dev and test, or a part of train held out as dev; and texts without labels."""

import random

from tasks.common.errors import InputError
from tasks.common.language import Message, tr
from tasks.common.texts.plain_texts import cut_at_sentences, read_plain_texts
from tasks.common.tool.device import is_first_process
from tasks.common.training.splits import hold_out_dev, note_repeated, note_unseen, read_files
from tasks.ner.data.reading import check_labeled, entity_types, note_unlabeled, read_examples
from tasks.ner.examples import Example


def has_overlap(examples):
    """Whether two entities of a text have a character in common."""
    for example in examples:
        ordered = sorted(example.entities)
        if any(after.start < before.end for before, after in zip(ordered, ordered[1:])):
            return True
    return False


def read_splits(run, seed, memory=None):
    """dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; tells of types not in train.

    Args:
        run: :class:`tasks.ner.arguments.NerArguments`.
        seed: draws the ``train_texts``, of which ``dev_fraction`` is held out: what is not drawn is not known.
        memory: as of :func:`tasks.common.training.splits.read_files`.

    Raises:
        InputError: a file is wrong, no entity is labeled, or there are fewer than ``train_texts``.
    """
    splits, names = read_files(run, read_examples, memory)
    note_repeated(splits, names, lambda example: (example.text, example.entities))
    if run.train_texts is not None:
        splits["train"], names["train"] = _drawn(splits["train"], run.train_texts, seed, names["train"])
    hold_out_dev(run, splits, names, lambda example: [entity.type for entity in example.entities])
    for split in ("train", "dev"):
        if split in splits:
            check_labeled(splits[split], names[split])
    if "test" in splits and is_first_process():
        note_unlabeled(splits["test"], names["test"])
    note_unseen(splits, names, Message("types"), entity_types)
    return splits


def draw(examples, count, seed):
    """Draw texts to learn from.

    Args:
        examples: labeled texts.
        count: how many to draw, at most all.
        seed: the same seed draws the same; fewer texts are among those that a larger ``count`` draws.

    Returns:
        List of ``count`` of the examples, in their order.
    """
    numbers = list(range(len(examples)))
    random.Random(seed).shuffle(numbers)
    return [examples[number] for number in sorted(numbers[:count])]


def _drawn(examples, count, seed, name):
    """The drawn examples, and what messages call them; says so."""
    if count > len(examples):
        raise InputError(
            "train_texts {count}: {name} has only {texts} texts; give a smaller number",
            count=count,
            name=name,
            texts=len(examples),
        )
    drawn = f"the {count:,} texts of {name} drawn with seed {seed}"
    if is_first_process():
        print(
            tr(
                "train_texts: {count:,} of the {texts:,} texts of {name}, drawn with seed {seed}",
                count=count,
                texts=len(examples),
                name=name,
                seed=seed,
            )
        )
    return draw(examples, count, seed), drawn


def read_more_texts(run):
    """The texts of ``texts`` as examples without entities, cut into pieces of at most ``max_characters``."""
    paths = [path.strip() for path in (run.texts or "").split(",") if path.strip()]
    return [
        Example(piece, (), path)
        for path in paths
        for text in read_plain_texts(path)
        for piece in cut_at_sentences(text, run.max_characters)
    ]
