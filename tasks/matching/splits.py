"""The data of a run: files for train, dev and test, a part of train held out, or one fold of several."""

import numpy as np

from tasks.common.errors import InputError
from tasks.common.training.splits import hold_out_dev, note_repeated, read_files
from tasks.matching.config import BI_ENCODER, PAIRS
from tasks.matching.data import read_labeled, task_of


def read_splits(run, seed, memory=None):
    """The examples of a run.

    Args:
        run: :class:`tasks.matching.arguments.MatchingArguments`.
        seed: draws the folds.
        memory: as of :func:`tasks.common.training.splits.read_files`.

    Returns:
        dict from ``train`` and, where there are any, ``dev`` and ``test`` to lists of examples.

    Raises:
        InputError: a file is wrong, the files do not go together, or there is nothing to learn in one.
    """
    splits, names = read_files(run, read_labeled, memory)
    note_repeated(splits, names, lambda example: (example.texts, example.label))
    if run.fold is not None:
        splits["train"], splits["test"] = cut_fold(splits["train"], run.folds, run.fold, seed)
        names["test"] = f"fold {run.fold} of {names['train']}"
    hold_out_dev(run, splits, names, lambda example: [example.label])
    _check_together(splits)
    if run.architecture == BI_ENCODER and task_of(splits["train"]) == PAIRS and "dev" not in splits:
        raise InputError("configuration: dev data choose the threshold of a bi_encoder of pairs; give a dev_fraction")
    for split, examples in splits.items():
        if len(examples[0].texts) == 2 and len({example.label for example in examples}) == 1:
            raise InputError(
                f"{names[split]}: all labels are {examples[0].label:g}; give data with different labels, which can be "
                "told apart"
            )
    return splits


def _check_together(splits):
    first = splits["train"][0]
    task, kinds = task_of(splits["train"]), {2: "pairs", 3: "triples"}
    for examples in splits.values():
        other = examples[0]
        if len(other.texts) != len(first.texts):
            raise InputError(
                f"{other.where}: {kinds[len(other.texts)]}, but {first.where} has {kinds[len(first.texts)]}; give one "
                "kind"
            )
        for example in examples if task == PAIRS else ():
            if example.label not in (0, 1):
                raise InputError(f"{example.where}: label {example.label:g}, but the training data have only 0 and 1")


def cut_fold(examples, folds, fold, seed):
    """Cut labeled data for one of ``folds`` runs; each example is in the test part of exactly one of them.

    Examples with the same first text (of triples: A) are in the same part. The parts have about as many examples.

    Args:
        examples: list of :class:`Example`.
        folds: number of parts.
        fold: the part to test on, from 1.
        seed: draws the parts.

    Returns:
        (rest, part): lists of examples in their order.

    Raises:
        InputError: there are fewer different first texts than folds.
    """
    groups = {}
    for index, example in enumerate(examples):
        groups.setdefault(example.text, []).append(index)
    groups = list(groups.values())
    if len(groups) < folds:
        raise InputError(f"{examples[0].where}: {len(groups)} different first texts do not make {folds} folds")
    sizes, chosen = [0] * folds, set()
    for index in np.random.RandomState(seed).permutation(len(groups)):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(groups[index])
        if smallest == fold - 1:
            chosen.update(groups[index])
    rest, part = ([e for index, e in enumerate(examples) if (index in chosen) == inside] for inside in (False, True))
    return rest, part
