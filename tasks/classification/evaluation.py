"""Scores of a classifier on labeled texts. Imports paddle only if the predictor does."""

from collections import Counter

from tasks.classification.data import Example, read_labeled
from tasks.classification.prediction import ClassificationDataset, Classifier
from tasks.common.errors import visible
from tasks.common.inference import encoder_outputs
from tasks.common.reports.tables import f1_row, print_score_rows

__all__ = ["evaluate_predictor", "read_labeled"]
MOST_CLASSES = 40  # rows of a table
MOST_CONFUSIONS = 15  # lines of the list


def evaluate_predictor(predictor: Classifier, examples: list[Example], title: str) -> dict:
    """Score a predictor on examples, print the scores and return them."""
    dataset = ClassificationDataset(examples, predictor.tokenizer, predictor.classes, predictor.max_characters)
    print_data_report({title: dataset})
    scores, _ = evaluate_model(predictor.model, dataset, predictor.batch_size, predictor.show_progress)
    print_scores(title, scores)
    return scores


def evaluate_model(model, dataset, batch_size, show_progress=False):
    """The :func:`classification_scores` of a model on a :class:`ClassificationDataset`, and its probabilities."""
    probabilities, classes = encoder_outputs(model, dataset.texts, batch_size, show_progress), model.config.classes
    predicted = [classes[best] for best in probabilities.argmax(axis=1)]
    gold = [example.label for example in dataset.examples]
    return classification_scores(gold, predicted, classes), probabilities


def classification_scores(gold, predicted, classes):
    """Scores of one label per text: ``accuracy``; ``macro_f1``, the mean F1 of the classes that occur as gold or
    predicted label; ``texts``, their number; ``per_class``, from a class to its
    :func:`~tasks.common.reports.tables.f1_row`; ``confusions``, dicts with ``gold``, ``predicted`` and ``count``, the
    most frequent first."""
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


def print_data_report(datasets):
    """Print the size of each :class:`~tasks.classification.prediction.ClassificationDataset` in a dict, and what
    ``max_characters`` cuts."""
    for name, dataset in datasets.items():
        lengths = sorted(len(example.text) for example in dataset.examples)
        sizes = f"{sum(lengths):,} characters (median {lengths[len(lengths) // 2]}, longest {lengths[-1]:,})"
        print(f"{visible(name)}: {len(lengths)} texts, {sizes}")
        if dataset.cut:
            share = f"{dataset.cut_characters / sum(lengths):.0%} of the characters are not read"
            print(f"  {dataset.cut} texts are cut to --max_characters {dataset.max_characters}, {share}")


def print_scores(title, scores):
    """Print the scores of :func:`classification_scores`: a table of the classes with the most texts, and the most
    frequent confusions."""
    per_class = scores["per_class"]
    chosen = set(sorted(per_class, key=lambda name: -per_class[name]["support"])[:MOST_CLASSES])
    print_score_rows(title, "class", [(name, row) for name, row in per_class.items() if name in chosen])
    if len(chosen) < len(per_class):
        print(f"  and {len(per_class) - len(chosen)} classes with fewer texts")
    shares = f"accuracy {scores['accuracy']:.4f}, macro F1 {scores['macro_f1']:.4f}"
    print(f"{visible(title)}: {shares}, {scores['texts']} texts")
    confusions = scores["confusions"]
    if confusions:
        print(f"confusions, the first {min(MOST_CONFUSIONS, len(confusions))} of {len(confusions)}")
    for row in confusions[:MOST_CONFUSIONS]:
        print(visible(f"  {row['count']:>6}  gold {row['gold']}, predicted {row['predicted']}"))
