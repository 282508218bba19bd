"""A threshold for each entity type, chosen on labelled data."""

import json
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError
from tasks.common.files import check_output_file, write_json
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.prediction.predictor import NerPredictor, score_predictions, without_overlaps
from tasks.ner.reports.printed import print_scores

# Spans that score less are not looked at: the loss trains for 0, and of lower ones there are as many as spans.
LOWEST_THRESHOLD = -5.0
MOST_CANDIDATES = 20  # a character
TEXTS_AT_ONCE = 256


def tune_thresholds(gold, candidates, types):
    """The thresholds with the highest corpus micro F1.

    F1 = 2 C / (P + G) with C correct and P predicted spans, sums over the types, and G gold spans. If f is the highest
    F1, its thresholds are those with the highest 2 C - f P (Dinkelbach 1967), which each type reaches by itself. So f
    starts at the F1 of threshold 0, each type takes its best, and f is computed again until it stays: a few rounds,
    exact, in integers. Where several thresholds are as good, the nearest to 0 is taken. It stands in the middle between
    the two observed logits that it separates, or at 0 if 0 does the same.

    Args:
        gold: for each text the set of its (start, end, type).
        candidates: for each text its (start, end, type, score), all that score above ``LOWEST_THRESHOLD``.
        types: names of the types.

    Returns:
        List of floats, one for each type.
    """
    scores = {kind: [] for kind in types}
    for wanted, found in zip(gold, candidates):
        for start, end, kind, score in found:
            scores[kind].append((score, (start, end, kind) in wanted))
    cuts = [_Cuts(scores[kind]) for kind in types]
    support = sum(len(wanted) for wanted in gold)
    chosen = [cut.at_zero for cut in cuts]
    best = -1.0
    while True:
        correct = sum(int(cut.correct[k]) for cut, k in zip(cuts, chosen))
        counted = sum(int(cut.predicted[k]) for cut, k in zip(cuts, chosen)) + support
        f1 = 2 * correct / counted if counted else 0.0
        if f1 <= best:
            break
        best = f1
        chosen = [cut.best(correct, counted) for cut in cuts]
    return [cut.threshold(k) for cut, k in zip(cuts, chosen)]


class _Cuts:
    """The ways to cut the candidates of one type, k = 0 .. distinct scores: the k highest scores are predicted.

    Args:
        scored: list of (score, whether it is correct).
    """

    def __init__(self, scored):
        scored = np.array(scored, dtype=np.float64).reshape(-1, 2)
        levels, level = np.unique(-scored[:, 0], return_inverse=True)  # from the highest score down
        self.scores = -levels
        self.predicted = np.cumsum([0, *np.bincount(level, minlength=len(levels))])
        self.correct = np.cumsum([0, *np.bincount(level[scored[:, 1] > 0], minlength=len(levels))])
        self.at_zero = int((self.scores > 0).sum())

    def best(self, correct, counted):
        """The k with the highest 2 C - f P for f = 2 ``correct`` / ``counted``, the nearest to ``at_zero``."""
        value = self.correct * counted - self.predicted * correct
        best = np.flatnonzero(value == value.max())
        return int(best[np.argmin(np.abs(best - self.at_zero))])

    def threshold(self, k):
        if k == self.at_zero:
            return 0.0
        above = self.scores[k - 1] if k else self.scores[0] + 1
        below = self.scores[k] if k < len(self.scores) else LOWEST_THRESHOLD
        middle = float(np.float32((above + below) / 2))  # scores are float32
        return middle if middle < above else float(below)


def thresholds_for(examples, candidates, types, allow_overlap):
    """The thresholds for labelled texts.

    Where entities do not overlap, a candidate that overlaps one with a higher score is not counted, whatever the
    thresholds: else a lower threshold would seem to let in what :func:`without_overlaps` takes out again.

    Args:
        examples: list of :class:`tasks.ner.examples.Example`.
        candidates, types: as of :func:`tune_thresholds`.
        allow_overlap: whether entities may overlap.

    Returns:
        List of floats, one for each type, which give these examples at least the F1 of threshold 0.
    """
    gold = [{(entity.start, entity.end, entity.type) for entity in example.entities} for example in examples]
    counted = candidates if allow_overlap else list(map(without_overlaps, candidates))
    tuned, zero = tune_thresholds(gold, counted, types), [0.0] * len(types)
    scores = [
        score_predictions(examples, above(candidates, thresholds, types, allow_overlap), types)["f1"]
        for thresholds in (tuned, zero)
    ]
    return tuned if scores[0] >= scores[1] else zero


def above(candidates, thresholds, types, allow_overlap):
    """The candidates of each text that score above the thresholds, of overlapping ones the best unless they may."""
    bound = dict(zip(types, np.broadcast_to(thresholds, len(types)).tolist()))
    found = [[entity for entity in entities if entity[3] > bound[entity[2]]] for entities in candidates]
    return found if allow_overlap else list(map(without_overlaps, found))


def tune_model(model_dir, data_file, device=None, batch_size=32, max_tokens=None):
    """Tune the thresholds of a trained model on a labelled file, print the scores and write them into its config.json.

    Returns:
        dict with ``before`` and ``after``, scores as of :func:`tasks.ner.metrics.entity_scores`, and ``thresholds``, a
        number for each type.

    Raises:
        InputError: the model or the file is wrong, or the folder cannot be written.
    """
    quiet_paddlenlp()
    examples = read_examples(data_file)
    if not any(example.entities for example in examples):
        raise InputError(f"{data_file}: no entity is labelled in it; give data with entities")
    config_file = Path(model_dir) / "config.json"
    predictor = NerPredictor(model_dir, device, batch_size, max_tokens, show_progress=True)
    check_output_file(config_file)
    types = predictor.types
    for example in examples:
        check_types(example, types)
    candidates = _candidates(predictor, [example.text for example in examples])
    config = predictor.model.config
    tuned = thresholds_for(examples, candidates, types, config.allow_overlap)
    before, after = (
        score_predictions(examples, above(candidates, thresholds, types, config.allow_overlap), types)
        for thresholds in (config.thresholds, tuned)
    )
    print_scores(f"{data_file} before", before)
    print_scores(f"{data_file} after", after)
    write_json(config_file, {**json.loads(config_file.read_text(encoding="utf-8")), "thresholds": tuned})
    for kind, threshold in zip(types, tuned):
        if threshold:
            print(f"{kind}: {threshold:.4f}")
    print(f"{config_file}: thresholds written, 0 for the other types")
    print(f"micro F1 {before['f1']:.4f} before, {after['f1']:.4f} after")
    return {"before": before, "after": after, "thresholds": dict(zip(types, tuned))}


def _candidates(predictor, texts):
    """For each text its (start, end, type, score) above ``LOWEST_THRESHOLD``.

    Raises:
        InputError: they are too many to hold, as those of a model that has not learned to tell spans apart.
    """
    candidates = []
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        part = texts[begin : begin + TEXTS_AT_ONCE]
        candidates += predictor.find(part, thresholds=LOWEST_THRESHOLD)
        most = MOST_CANDIDATES * sum(map(len, part))
        if sum(map(len, candidates[begin:])) > max(most, 1000):
            raise InputError(
                f"the model scores more than {MOST_CANDIDATES} spans a character above {LOWEST_THRESHOLD}: it does not "
                "tell spans apart yet; train it longer"
            )
    return candidates
