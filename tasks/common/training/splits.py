"""The files of a run, and the part of the training data that is held out where there is no dev file."""

import numpy as np

from tasks.common.errors import InputError
from tasks.common.tool.device import is_first_process
from tasks.common.training.memory import IN_MEMORY
from tasks.common.visible import visible


def read_files(keys, read, memory=None):
    """The labeled files of a run, or the examples that it was given in memory.

    Args:
        keys: with ``train_file``, ``dev_file`` and ``test_file``.
        read: function of a path; its examples.
        memory: dict from a split to its examples, where the key says ``IN_MEMORY``.

    Returns:
        (splits, names): dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; dict from each
        to what messages call its data.
    """
    names = {"train": keys.train_file, "dev": keys.dev_file, "test": keys.test_file}
    splits = {}
    for split, path in names.items():
        if path == IN_MEMORY:
            if split not in (memory or {}):
                raise InputError(
                    "configuration: {split}_file is {in_memory!r}, of a run that had its data in memory; "
                    "name a file, or give data to train in Python",
                    split=split,
                    in_memory=IN_MEMORY,
                )
            splits[split], names[split] = memory[split], split
        elif path:
            splits[split] = read(path)
    return splits, names


def hold_out_dev(keys, splits, names):
    """Where dev is wanted and not there, take ``dev_fraction`` of train for it, in the dicts of :func:`read_files`."""
    if "dev" not in splits and keys.has_dev:
        names["dev"] = f"the {keys.dev_fraction:g} of {names['train']} that is held out"
        splits["train"], splits["dev"] = hold_out(splits["train"], keys.dev_fraction)


def note_unseen(splits, names, what, labels_of):
    """Print which labels (``what`` they are, such as "types") of other splits train does not have."""
    seen = set(labels_of(splits["train"]))
    for split in splits:
        unseen = sorted(set(labels_of(splits[split])) - seen)
        if unseen and is_first_process():
            note = f"note: {names[split]} has {what} that {names['train']} does not have: {', '.join(unseen)}"
            print(visible(note))


def hold_out(examples, fraction):
    """Cut labeled data in two, always in the same way: a text that is there twice is on one side.

    Args:
        examples: with a ``text`` and the place ``where`` it is, "path:line".
        fraction: of the texts that is to be held out.

    Returns:
        (rest, held): lists of examples in their order; ``held`` has ``fraction`` of the texts, at least one.

    Raises:
        InputError: there are less than two different texts.
    """
    texts = sorted({example.text for example in examples})
    if len(texts) < 2:
        raise InputError("{where}: one text cannot be cut in two; give a dev_file", where=examples[0].where)
    np.random.RandomState(0).shuffle(texts)
    held = set(texts[: max(1, min(len(texts) - 1, round(fraction * len(texts))))])
    return [e for e in examples if e.text not in held], [e for e in examples if e.text in held]
