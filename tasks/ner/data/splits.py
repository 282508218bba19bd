"""The files of a run: train, dev and test, or a part of train held out as dev; and texts without labels."""

from tasks.common.errors import InputError
from tasks.common.texts.plain_texts import cut_at_sentences, read_plain_texts
from tasks.common.tool.device import is_first_process
from tasks.common.training.splits import hold_out
from tasks.ner.data.reading import entity_types, read_examples
from tasks.ner.examples import Example


def has_overlap(examples):
    """Whether two entities of a text have a character in common."""
    for example in examples:
        ordered = sorted(example.entities)
        if any(after.start < before.end for before, after in zip(ordered, ordered[1:])):
            return True
    return False


def read_splits(run):
    """dict from ``train`` and, where there is one, ``dev`` and ``test`` to examples; tells of types not in train."""
    files = {"train": run.train_file, "dev": run.dev_file, "test": run.test_file}
    splits = {name: read_examples(path) for name, path in files.items() if path}
    if "dev" not in splits and run.has_dev:
        files["dev"] = f"the {run.dev_fraction:g} of {run.train_file} that is held out"
        splits["train"], splits["dev"] = hold_out(splits["train"], run.dev_fraction)
    for name in [name for name in ("train", "dev") if name in splits]:
        if not entity_types(splits[name]):
            raise InputError(f"{files[name]}: no entity is labeled in it; give data with entities")
    for name in splits:
        unseen = sorted(set(entity_types(splits[name])) - set(entity_types(splits["train"])))
        if unseen and is_first_process():
            print(f"note: {files[name]} has types that {run.train_file} does not have: {', '.join(unseen)}")
    return splits


def read_more_texts(run):
    """The texts of ``masked_lm_files`` as examples without entities, cut into pieces of at most ``max_characters``."""
    paths = [path.strip() for path in (run.masked_lm_files or "").split(",") if path.strip()]
    return [
        Example(piece, (), path)
        for path in paths
        for text in read_plain_texts(path)
        for piece in cut_at_sentences(text, run.max_characters)
    ]
