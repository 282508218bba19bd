"""What training and evaluation print."""

from tasks.common.errors import visible
from tasks.common.reports.tables import print_score_rows

MOST_CLASSES = 40  # rows of a table
MOST_CONFUSIONS = 15  # lines of the list


def print_data_report(datasets):
    """Print the size of each data set and what ``max_characters`` cuts.

    Args:
        datasets: dict from a name to a :class:`tasks.classification.batching.ClassificationDataset`.
    """
    for name, dataset in datasets.items():
        lengths = sorted(len(example.text) for example in dataset.examples)
        median, share = lengths[len(lengths) // 2], dataset.cut_characters / sum(lengths)
        line = f"{visible(name)}: {len(lengths)} texts, {sum(lengths):,} characters"
        line += f" (median {median}, longest {lengths[-1]:,})"
        if dataset.cut:
            line += f"; {dataset.cut} texts are cut to --max_characters {dataset.max_characters}"
            line += f", {share:.0%} of the characters are not read"
        print(line)


def print_scores(title, scores):
    """Print the result of :func:`tasks.classification.metrics.classification_scores`: a table of the classes, of many
    those with the most texts, and the most frequent confusions."""
    per_class = scores["per_class"]
    chosen = set(sorted(per_class, key=lambda name: -per_class[name]["support"])[:MOST_CLASSES])
    print_score_rows(title, "class", [(name, row) for name, row in per_class.items() if name in chosen])
    if len(chosen) < len(per_class):
        print(f"  and {len(per_class) - len(chosen)} classes with fewer texts")
    print(
        f"{visible(title)}: accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}, {scores['texts']} "
        "texts"
    )
    confusions = scores["confusions"]
    if confusions:
        print(f"confusions, the first {min(MOST_CONFUSIONS, len(confusions))} of {len(confusions)}")
    for row in confusions[:MOST_CONFUSIONS]:
        told = f"  {row['count']:>6}  gold {row['gold']}, predicted {row['predicted']}"
        print(visible(told))
