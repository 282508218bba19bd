"""The files of a run: train, dev and test, or a part of train held out as dev; and texts without labels."""

from tasks.common.errors import InputError
from tasks.common.texts.plain_texts import cut_at_sentences, read_plain_texts
from tasks.common.training.splits import hold_out_dev, note_unseen, read_files
from tasks.ner.data.reading import entity_types, read_examples
from tasks.ner.examples import Example


def has_overlap(examples):
    """Whether two entities of a text have a character in common."""
    for example in examples:
        ordered = sorted(example.entities)
        if any(after.start < before.end for before, after in zip(ordered, ordered[1:])):
            return True
    return False


def read_splits(run, memory=None):
    """dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; tells of types not in train.

    Args:
        run: :class:`tasks.ner.arguments.NerArguments`.
        memory: as of :func:`tasks.common.training.splits.read_files`.
    """
    splits, names = read_files(run, read_examples, memory)
    hold_out_dev(run, splits, names)
    for split in ("train", "dev"):
        if split in splits and not entity_types(splits[split]):
            raise InputError(f"{names[split]}: no entity is labeled in it; give data with entities")
    note_unseen(splits, names, "types", entity_types)
    return splits


def read_more_texts(run):
    """The texts of ``texts`` as examples without entities, cut into pieces of at most ``max_characters``."""
    paths = [path.strip() for path in (run.texts or "").split(",") if path.strip()]
    return [
        Example(piece, (), path)
        for path in paths
        for text in read_plain_texts(path)
        for piece in cut_at_sentences(text, run.max_characters)
    ]
