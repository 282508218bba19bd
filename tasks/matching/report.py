"""What training and evaluation print."""

import numpy as np

from tasks.matching.examples import GRADES, PAIRS, task_of


def data_report(name, dataset, max_tokens):
    """What is in a :class:`tasks.matching.batching.MatchingDataset`, in one line."""
    examples = dataset.examples
    task, labels = task_of(examples), [example.label for example in examples]
    if task == PAIRS:
        what = f"{len(examples)} pairs, {labels.count(1)} of them with label 1"
    elif task == GRADES:
        what = f"{len(examples)} pairs with grades from {min(labels):g} to {max(labels):g}"
    else:
        different = len({example.text for example in examples})
        what = f"{len(examples)} triples with {different} different texts A"
    lengths = [len(sequence.ids) for sequence in dataset.sequences]
    cut = ""
    if dataset.num_cut:
        cut = f", {dataset.num_cut} of them cut to {max_tokens}"
    return f"{name}: {what}; {len(lengths)} sequences, {np.mean(lengths):.0f} tokens on average{cut}"
