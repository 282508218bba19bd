"""Accuracy, macro F1 and confusions of classes."""

from collections import Counter

from tasks.common.scores import f1_row


def classification_scores(gold, predicted, classes):
    """Scores of one label for each text.

    Args:
        gold, predicted: names of classes, one for each text; at least one text.
        classes: all classes, in the order of the table.

    Returns:
        dict with ``accuracy``; ``macro_f1``, the mean F1 of the classes that are the gold or the predicted label of any
        text; ``texts``; ``per_class``: precision, recall, F1, support (gold), predicted and correct of each class, a
        quotient 0/0 counting as 0; ``confusions``: dicts with ``gold``, ``predicted`` and ``count``, the most frequent
        first.
    """
    pairs = Counter(zip(gold, predicted))
    supports, predictions = Counter(gold), Counter(predicted)
    per_class = {name: f1_row(supports[name], predictions[name], pairs[name, name]) for name in classes}
    seen = [row["f1"] for row in per_class.values() if row["support"] or row["predicted"]]
    order = {name: index for index, name in enumerate(classes)}
    wrong = sorted(
        ((gold, found, count) for (gold, found), count in pairs.items() if gold != found),
        key=lambda row: (-row[2], order[row[0]], order[row[1]]),
    )
    return {
        "accuracy": sum(row["correct"] for row in per_class.values()) / len(gold),
        "macro_f1": sum(seen) / len(seen),
        "texts": len(gold),
        "per_class": per_class,
        "confusions": [{"gold": gold, "predicted": found, "count": count} for gold, found, count in wrong],
    }
