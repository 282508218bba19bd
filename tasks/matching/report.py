"""What training and evaluation print."""

import numpy as np

from tasks.common.language import Message, tr
from tasks.matching.examples import GRADES, PAIRS, task_of


def data_report(name, dataset, max_tokens):
    """What is in a :class:`tasks.matching.batching.MatchingDataset`, in one line."""
    examples = dataset.examples
    task, labels = task_of(examples), [example.label for example in examples]
    if task == PAIRS:
        what = Message("{count} pairs, {positive} of them with label 1", count=len(examples), positive=labels.count(1))
    elif task == GRADES:
        what = Message(
            "{count} pairs with grades from {least:g} to {most:g}",
            count=len(examples),
            least=min(labels),
            most=max(labels),
        )
    else:
        different = len({example.text for example in examples})
        what = Message("{count} triples with {different} different texts A", count=len(examples), different=different)
    lengths = [len(sequence.ids) for sequence in dataset.sequences]
    cut = ""
    if dataset.num_cut:
        cut = Message(", {count} of them cut to {max_tokens}", count=dataset.num_cut, max_tokens=max_tokens)
    return tr(
        "{name}: {what}; {count} sequences, {mean:.0f} tokens on average{cut}",
        name=name,
        what=what,
        count=len(lengths),
        mean=np.mean(lengths),
        cut=cut,
    )
