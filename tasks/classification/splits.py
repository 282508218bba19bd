"""The files of a run: train, dev and test, or a part of train held out as dev."""

from tasks.classification.data import class_names, read_examples
from tasks.common.errors import InputError
from tasks.common.tool.device import is_first_process
from tasks.common.training.splits import hold_out


def read_splits(run):
    """dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; tells of classes not in train.

    Raises:
        InputError: a file is wrong, or the training data have less than two classes or one for each text.
    """
    files = {"train": run.train_file, "dev": run.dev_file, "test": run.test_file}
    splits = {name: read_examples(path) for name, path in files.items() if path}
    classes = class_names(splits["train"])
    if len(classes) < 2:
        raise InputError(
            f"{run.train_file}: all texts have the label {classes[0]!r}; give data with two classes or more"
        )
    if len(classes) == len(splits["train"]) > 2:
        raise InputError(
            f"{run.train_file}: each text has a label of its own; is it label<TAB>text? Write text<TAB>label"
        )
    if "dev" not in splits and run.has_dev:
        files["dev"] = f"the {run.dev_fraction:g} of {run.train_file} that is held out"
        splits["train"], splits["dev"] = hold_out(splits["train"], run.dev_fraction)
    for name in splits:
        unseen = sorted(set(class_names(splits[name])) - set(class_names(splits["train"])))
        if unseen and is_first_process():
            print(f"note: {files[name]} has classes that {run.train_file} does not have: {', '.join(unseen)}")
    return splits
