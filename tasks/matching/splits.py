"""The data of a run: files for train, dev and test, a part of train held out, or one fold of several."""

from collections import Counter

import numpy as np

from tasks.common.errors import InputError
from tasks.common.training.splits import hold_out_dev, note_repeated, read_files
from tasks.matching.config import BI_ENCODER, PAIRS
from tasks.matching.data import read_labeled, task_of


def read_splits(keys, seed, memory=None):
    """The examples of a run by split: ``train`` and, if there are any, ``dev`` and ``test``.

    ``keys`` are :class:`tasks.matching.arguments.MatchingArguments`, the seed draws the folds, ``memory`` is as of
    :func:`tasks.common.training.splits.read_files`. Raises InputError if a file is wrong, the files do not go together,
    or there is nothing to learn in one.
    """
    splits, names = read_files(keys, read_labeled, memory)
    note_repeated(splits, names, lambda example: (example.texts, example.label))
    if keys.fold is not None:
        splits["train"], splits["test"] = cut_fold(splits["train"], keys.folds, keys.fold, seed)
        names["test"] = f"fold {keys.fold} of {names['train']}"
    hold_out_dev(keys, splits, names, lambda example: [example.label])
    _check_together(splits)
    if keys.architecture == BI_ENCODER and task_of(splits["train"]) == PAIRS and "dev" not in splits:
        raise InputError("configuration: dev data choose the threshold of a bi_encoder of pairs; give a dev_fraction")
    for split, examples in splits.items():
        if len(examples[0].texts) == 2 and len({example.label for example in examples}) == 1:
            raise InputError(
                f"{names[split]}: all labels are {examples[0].label:g}; give data with different labels, which can be "
                "told apart"
            )
    return splits


def _check_together(splits):
    first, task = splits["train"][0], task_of(splits["train"])
    kinds = {2: "pairs", 3: "triples"}
    for examples in splits.values():
        other = examples[0]
        if len(other.texts) != len(first.texts):
            here, there = kinds[len(other.texts)], kinds[len(first.texts)]
            raise InputError(f"{other.where}: {here}, but {first.where} has {there}; give one kind")
        for example in examples if task == PAIRS else ():
            if example.label not in (0, 1):
                raise InputError(f"{example.where}: label {example.label:g}, but the training data have only 0 and 1")


def cut_fold(examples, folds, fold, seed):
    """(rest, part) of labeled data, lists in their order: ``part`` is tested in fold number ``fold``, from 1, of
    ``folds``, each example in exactly one; the seed draws them.

    Examples with the same first text (of triples: A) are in the same part. The parts have about as many examples.
    Raises InputError if there are fewer different first texts than folds.
    """
    counts = Counter(example.text for example in examples)
    if len(counts) < folds:
        raise InputError(f"{examples[0].where}: {len(counts)} different first texts do not make {folds} folds")
    texts, sizes, chosen = list(counts), [0] * folds, set()
    for index in np.random.RandomState(seed).permutation(len(texts)):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += counts[texts[index]]
        if smallest == fold - 1:
            chosen.add(texts[index])
    rest, part = ([e for e in examples if (e.text in chosen) == is_tested] for is_tested in (False, True))
    return rest, part
