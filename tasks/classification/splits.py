"""The files of a run: train, dev and test, or a part of train held out as dev."""

from tasks.classification.data import class_names, read_examples
from tasks.common.errors import InputError
from tasks.common.training.splits import hold_out_dev, note_repeated, note_unseen, read_files


def read_splits(run, memory=None):
    """dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; tells of classes not in train.

    Args:
        run: :class:`tasks.classification.arguments.ClassificationArguments`.
        memory: as of :func:`tasks.common.training.splits.read_files`.

    Raises:
        InputError: a file is wrong, or the training data have less than two classes or one for each text.
    """
    splits, names = read_files(run, read_examples, memory)
    note_repeated(splits, names, lambda example: (example.text, example.label))
    classes = class_names(splits["train"])
    if len(classes) < 2:
        raise InputError(
            f"{names['train']}: all texts have the label {classes[0]!r}; give data with two classes or more"
        )
    if len(classes) == len(splits["train"]) > 2:
        raise InputError(
            f"{names['train']}: each text has a label of its own; is it label<TAB>text? Write text<TAB>label"
        )
    hold_out_dev(run, splits, names, lambda example: [example.label])
    note_unseen(splits, names, "classes", class_names)
    return splits
