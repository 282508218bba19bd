"""Precision, recall and F1."""

_TITLES = {"f1": "F1", "macro_f1": "macro F1", "spearman": "Spearman"}  # where they differ from the names


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


def scores_line(scores, names):
    """The scores of these ``names``, as far as they are there, in one line."""
    return "  ".join(f"{_TITLES.get(name, name)} {scores[name]:.4f}" for name in names if name in scores)
