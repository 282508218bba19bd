"""A threshold and a temperature for each entity type, chosen on labeled data from the candidates: the spans that could
be entities."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tasks.ner.arguments import of_types
from tasks.ner.examples import Entity, Example, without_overlaps
from tasks.ner.metrics import entity_scores, scored_by_type

# Spans that score less are not looked at: the loss trains for 0, and of lower ones there are as many as spans.
LOWEST_THRESHOLD = -5.0
MOST_CANDIDATES, LEAST_BOUND = 20, 1000  # candidates a character, and of any text
FIRST_TEXTS, TEXTS_AT_ONCE = 16, 256
NOT_APART = (
    f"the model scores more than {MOST_CANDIDATES} spans a character above {LOWEST_THRESHOLD}: it does not tell spans "
    "apart yet; train it longer"
)
LEAST_FOR_F1 = -3.0
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 50.0
# As many candidates must a type have to count as much for its temperature as all types together.
PRIOR_CANDIDATES = 50


def find_candidates(
    find: Callable[[list[Any]], list[list[Entity]]], texts: list[Any], lengths: Sequence[int]
) -> list[list[Entity]] | None:
    """For each text its entities that score above ``LOWEST_THRESHOLD``, which ``find`` finds in some of the texts;
    ``lengths`` are characters of each. None if there are too many to hold (:data:`NOT_APART`)."""
    candidates: list[list[Entity]] = []
    while len(candidates) < len(texts):
        begin = len(candidates)
        end = begin + (TEXTS_AT_ONCE if begin else FIRST_TEXTS)
        candidates += find(texts[begin:end])
        most = MOST_CANDIDATES * sum(lengths[begin:end])
        if sum(map(len, candidates[begin:])) > max(most, LEAST_BOUND):
            return None
    return candidates


def above_thresholds(
    candidates: list[list[Entity]], thresholds: float | Sequence[float], types: Sequence[str], allow_overlap: bool
) -> list[list[Entity]]:
    """The candidates of each text that score above the thresholds, of overlapping ones the best unless they may."""
    bound = dict(zip(types, of_types(thresholds, len(types))))
    found = [[entity for entity in entities if entity.score > bound[entity.type]] for entities in candidates]
    return found if allow_overlap else list(map(without_overlaps, found))


def tune_thresholds(examples: list[Example], candidates: list[list[Entity]], types: list[str]) -> list[float]:
    """The thresholds with the highest corpus micro F1, one for each type, from labeled examples and all entities of
    each that score above ``LOWEST_THRESHOLD``.

    F1 = 2 C / (P + G) with C correct and P predicted spans, sums over the types, and G gold spans. If f is the highest
    F1, its thresholds are those with the highest 2 C - f P (Dinkelbach 1967), which each type reaches by itself. So f
    starts at the F1 of threshold 0, each type takes its best, and f is computed again until it stays: a few rounds,
    exact, in integers. Where several thresholds are as good, the nearest to 0 is taken, of two as near the higher. It
    is the middle between the two observed logits that it separates, or at 0 if 0 does the same.
    """
    cuts = [_Cuts(*of_type) for of_type in scored_by_type(examples, candidates, types).values()]
    support = sum(len(example.spans) for example in examples)
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


def threshold_for_f1(f1: float) -> float:
    """The threshold that is best for F1, for all types, where a model's probabilities are right: half the F1 (Lipton,
    Elkan and Narayanaswamy 2014, arXiv 1402.1892), as a logit from ``LEAST_FOR_F1`` to 0.

    A model that finds little, as of few labels, gains by a lower threshold: a span that is right with probability p
    adds to F1 if p is more than F1 / 2. One number comes from all entities of dev, so it needs fewer of them than
    :func:`tune_thresholds`. The F1 is of threshold 0, on texts that the model has not learned from.
    """
    share = f1 / 2
    return max(LEAST_FOR_F1, math.log(share / (1 - share))) if share > 0 else LEAST_FOR_F1


class _Cuts:
    """The ways to cut the candidates of one type: of k = 0 .. distinct scores the k highest are predicted."""

    def __init__(self, scores, labels):
        levels, level = np.unique(-scores, return_inverse=True)  # from the highest score down
        self.scores = -levels
        self.predicted = np.cumsum([0, *np.bincount(level, minlength=len(levels))])
        self.correct = np.cumsum([0, *np.bincount(level[labels], minlength=len(levels))])
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


def thresholds_for(
    examples: list[Example], candidates: list[list[Entity]], types: list[str], allow_overlap: bool
) -> list[float]:
    """The thresholds for labeled texts, one for each type, which give these examples at least the F1 of threshold 0.

    Where entities do not overlap, a candidate that overlaps one with a higher score is not counted, whatever the
    thresholds: else a lower threshold would seem to let in what :func:`without_overlaps` takes out again.
    """
    counted = candidates if allow_overlap else list(map(without_overlaps, candidates))
    tuned, zero = tune_thresholds(examples, counted, types), [0.0] * len(types)
    scores = [
        entity_scores(examples, above_thresholds(candidates, thresholds, types, allow_overlap), types)["f1"]
        for thresholds in (tuned, zero)
    ]
    return tuned if scores[0] >= scores[1] else zero


# ---- temperatures


def probabilities_of(scores: np.ndarray, temperatures: np.ndarray | float) -> np.ndarray:
    """sigmoid(score / temperature), float64, for logits of any size."""
    return np.exp(-np.logaddexp(0, -np.asarray(scores, dtype=np.float64) / temperatures))


def negative_log_likelihood(scores: np.ndarray, labels: np.ndarray, temperature: np.ndarray | float = 1.0) -> float:
    """Sum over candidates of -log p, where p is the probability of the truth. ``labels`` are 1 where the candidate
    is an entity, else 0, or anything between; ``temperature`` is one, or one for each candidate."""
    scaled = np.asarray(scores, dtype=np.float64) / temperature
    return float(np.sum(np.logaddexp(0.0, scaled) - labels * scaled))


def fit_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """The temperature T with the least negative log likelihood of candidates, from ``LOWEST_TEMPERATURE`` to
    ``HIGHEST_TEMPERATURE``; 1 where there is no candidate (Guo et al. 2017, arXiv 1706.04599, section 4.2, here of two
    classes). Above 1 it says that the scores promise too much. The likelihood is convex in 1 / T.

    So that a few candidates without an error do not make everything certain, labels are as of Platt (1999,
    "Probabilistic outputs for support vector machines", section 2.2): (N + 1) / (N + 2) for N right ones, and 1 / (M +
    2) for M wrong ones.
    """
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    if not scores.any():  # no candidate, or none that a temperature changes
        return 1.0
    right = int(labels.sum())
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (len(labels) - right + 2))

    def slope(inverse):  # of the likelihood, rising in 1 / T
        return float(np.dot(scores, probabilities_of(scores * inverse, 1.0) - targets))

    least, most = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
    if slope(least) >= 0:
        return HIGHEST_TEMPERATURE
    if slope(most) <= 0:
        return LOWEST_TEMPERATURE
    from scipy.optimize import brentq  # which an installation for ONNX alone does not have

    return 1 / brentq(slope, least, most)


def fit_temperatures(scored: dict[str, tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """A temperature for each type, from its candidates: logits, and whether each is an entity. They give the candidates
    no higher negative log likelihood than 1 for all types; where they would, 1 for all.

    A type with n candidates takes the geometric mean of its own temperature and the temperature of all types together,
    with the weights n and ``PRIOR_CANDIDATES``, because a temperature of a few candidates is chance.
    """
    scores, labels = (np.concatenate([[], *of_all]) for of_all in zip(*scored.values())) if scored else ([], [])
    of_all_types = fit_temperature(scores, labels)
    fitted = []
    for of_type in scored.values():
        count = len(of_type[0])
        own = np.log(fit_temperature(*of_type))
        mean = (count * own + PRIOR_CANDIDATES * np.log(of_all_types)) / (count + PRIOR_CANDIDATES)
        fitted.append(round(float(np.exp(mean)), 4))
    ones = [1.0] * len(fitted)
    before, after = (
        sum(negative_log_likelihood(*of_type, one) for of_type, one in zip(scored.values(), temperatures))
        for temperatures in (ones, fitted)
    )
    return fitted if after <= before else ones


def temperatures_for(
    examples: list[Example], candidates: list[list[Entity]], types: list[str], allow_overlap: bool
) -> list[float]:
    """The temperatures of ``types`` for labeled texts, as in :func:`fit_temperatures`. ``candidates`` are for each text
    all entities that score above a low logit. Where entities do not overlap, candidates that a better one overlaps do
    not count, as they are never found."""
    counted = candidates if allow_overlap else list(map(without_overlaps, candidates))
    return fit_temperatures(scored_by_type(examples, counted, types))
