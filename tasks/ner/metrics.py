"""Precision, recall and F1 of entities."""

from collections import Counter


def entity_scores(gold, predicted, types):
    """Corpus micro scores over exact (start, end, type): counts are summed over all texts before dividing.

    Args:
        gold, predicted: for each text the set of its (start, end, type).
        types: the types to report, in this order.

    Returns:
        dict with ``precision``, ``recall``, ``f1``, ``support`` (gold entities), ``predicted``, ``correct``, and
        ``per_type`` with the same for each type. A quotient 0/0 counts as 0.
    """
    gold_count, predicted_count, correct_count = Counter(), Counter(), Counter()
    for wanted, found in zip(gold, predicted):
        wanted, found = set(wanted), set(found)
        gold_count.update(kind for _, _, kind in wanted)
        predicted_count.update(kind for _, _, kind in found)
        correct_count.update(kind for _, _, kind in wanted & found)
    scores = f1_row(sum(gold_count.values()), sum(predicted_count.values()), sum(correct_count.values()))
    scores["per_type"] = {
        kind: f1_row(gold_count[kind], predicted_count[kind], correct_count[kind]) for kind in types
    }
    return scores


def f1_row(support, predicted, correct):
    """Precision, recall and F1 with the counts they come from; a quotient 0/0 counts as 0."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / support if support else 0.0
    f1 = 2 * correct / (predicted + support) if predicted + support else 0.0
    return {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "predicted": predicted,
        "correct": correct,
    }
