"""Precision, recall and F1."""


def f1_row(support: int, predicted: int, correct: int) -> dict:
    """Precision, recall and F1 with the counts they come from; a quotient 0/0 counts as 0."""
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / support if support else 0.0,
        "f1": 2 * correct / (predicted + support) if predicted + support else 0.0,
        "support": support,
        "predicted": predicted,
        "correct": correct,
    }
