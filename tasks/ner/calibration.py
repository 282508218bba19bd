"""A threshold and a temperature for each entity type, chosen on labeled data from the candidates: the spans that could
be entities."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paddle_rope.tasks.ner.arguments import of_types, probability
from paddle_rope.tasks.ner.examples import Example, Found, without_overlaps
from paddle_rope.tasks.ner.metrics import entity_scores, scored_by_type

# Spans that score less are ignored: the loss separates at 0, and most spans of a text score far below it.
LOWEST_THRESHOLD = -5.0
MOST_CANDIDATES, LEAST_BOUND = 20, 1000  # candidates per character, and the lowest limit for a call
FIRST_TEXTS, TEXTS_AT_ONCE = 16, 256
NOT_APART = (
    f"the model scores more than {MOST_CANDIDATES} spans a character above {LOWEST_THRESHOLD}: it does not tell spans "
    "apart yet; train it longer"
)
LEAST_FOR_F1 = -3.0
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 50.0
# With this many candidates, a type counts as much for its temperature as all types together.
PRIOR_CANDIDATES = 50


def find_candidates(find: Callable[[list[Any]], Found], texts: list[Any], lengths: Sequence[int]) -> Found | None:
    """The entities of each text that score above ``LOWEST_THRESHOLD``, found by calling ``find`` on some texts at a
    time; ``lengths`` are the texts' lengths in characters. None if there are too many to hold (:data:`NOT_APART`)."""
    candidates: Found = []
    while len(candidates) < len(texts):
        begin = len(candidates)
        end = begin + (TEXTS_AT_ONCE if begin else FIRST_TEXTS)
        candidates += find(texts[begin:end])
        most = MOST_CANDIDATES * sum(lengths[begin:end])
        if sum(map(len, candidates[begin:])) > max(most, LEAST_BOUND):
            return None
    return candidates


def with_probabilities(candidates: Found, temperatures: float | Sequence[float], types: Sequence[str]) -> Found:
    """The candidates of each text, each with its probability by the temperature of its type."""
    of_type = dict(zip(types, of_types(temperatures, len(types))))
    return [
        [one._replace(probability=probability(one.score, of_type[one.type])) for one in some] for some in candidates
    ]


def above_thresholds(
    candidates: Found, thresholds: float | Sequence[float], types: Sequence[str], allow_overlap: bool
) -> Found:
    """The candidates of each text above the thresholds; only the best of overlapping ones if they may not overlap."""
    bound = dict(zip(types, of_types(thresholds, len(types))))
    found = [[entity for entity in entities if entity.score > bound[entity.type]] for entities in candidates]
    return found if allow_overlap else list(map(without_overlaps, found))


def tune_thresholds(examples: list[Example], candidates: Found, types: list[str]) -> list[float]:
    """The thresholds with the highest corpus micro F1, one for each type, from labeled examples and all entities of
    each that score above ``LOWEST_THRESHOLD``.

    F1 = 2 C / (P + G) with C correct and P predicted spans, sums over the types, and G gold spans. If f is the highest
    F1, its thresholds maximize 2 C - f P (Dinkelbach 1967), which can be done for each type separately. So f starts at
    the F1 of threshold 0, each type takes its best threshold, and f is computed again until it no longer rises: a few
    rounds, exact, in integers. Of equally good thresholds the nearest to 0 is taken, of two equally near ones the
    higher. It lies midway between the two observed logits that it separates, or at 0 if 0 does the same.
    """
    cuts = [_Cuts(*of_type) for of_type in scored_by_type(examples, candidates, types).values()]
    support = sum(len(example.spans) for example in examples)
    best, chosen = -1.0, [cut.at_zero for cut in cuts]
    while True:
        correct = sum(int(cut.correct[k]) for cut, k in zip(cuts, chosen))
        counted = sum(int(cut.predicted[k]) for cut, k in zip(cuts, chosen)) + support
        f1 = 2 * correct / counted if counted else 0.0
        if f1 <= best:
            return [cut.threshold(k) for cut, k in zip(cuts, chosen)]
        best, chosen = f1, [cut.best(correct, counted) for cut in cuts]


def common_threshold(examples: list[Example], candidates: Found, types: list[str]) -> float:
    """The threshold for all types with the highest corpus micro F1; arguments as for :func:`tune_thresholds`. It is 0
    if no candidate is right."""
    scored = scored_by_type(examples, candidates, types).values()
    scores, labels = map(np.concatenate, zip(*scored))
    cuts, support = _Cuts(scores, labels), sum(len(example.spans) for example in examples)
    f1 = 2 * cuts.correct / np.maximum(cuts.predicted + support, 1)
    return cuts.threshold(int(np.argmax(f1))) if f1.any() else 0.0


def threshold_for_f1(f1: float) -> float:
    """The threshold for all types that is best for F1 if a model's probabilities are right: half the F1 (Lipton, Elkan
    and Narayanaswamy 2014, arXiv 1402.1892), as a logit from ``LEAST_FOR_F1`` to 0.

    A model that finds little, as after training on few labels, gains from a lower threshold: a span that is right with
    probability p raises F1 if p is more than F1 / 2. This one number comes from all entities of dev, so it needs fewer
    of them than :func:`tune_thresholds`. ``f1`` is measured at threshold 0, on texts that the model was not trained on.
    """
    share = f1 / 2
    return max(LEAST_FOR_F1, math.log(share / (1 - share))) if share > 0 else LEAST_FOR_F1


class _Cuts:
    """The ways to cut the candidates of one type: cut k = 0, 1, ... predicts the k highest distinct scores."""

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


def thresholds_for(examples: list[Example], candidates: Found, types: list[str], allow_overlap: bool) -> list[float]:
    """The thresholds tuned on labeled texts, one for each type; these texts get at least the F1 of threshold 0.

    If entities may not overlap, a candidate that overlaps a higher-scoring one is never counted, whatever the
    thresholds: otherwise a lower threshold would seem to admit spans that :func:`without_overlaps` removes again.
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
    """Sum over candidates of -log p, where p is the probability of the true label. ``labels`` are 1 for an entity, else
    0, or anything in between; ``temperature`` is one number, or one for each candidate."""
    scaled = np.asarray(scores, dtype=np.float64) / temperature
    return float(np.sum(np.logaddexp(0.0, scaled) - labels * scaled))


def fit_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """The temperature T, from ``LOWEST_TEMPERATURE`` to ``HIGHEST_TEMPERATURE``, that minimizes the negative log
    likelihood of the candidates; 1 if there are none (Guo et al. 2017, arXiv 1706.04599, section 4.2, here with two
    classes). A T above 1 means that the scores are overconfident. The negative log likelihood is convex in 1 / T.

    Labels are smoothed as in Platt (1999, "Probabilistic outputs for support vector machines", section 2.2), so that a
    few candidates without an error do not make everything certain: (N + 1) / (N + 2) for N right candidates, and 1 / (M
    + 2) for M wrong ones.
    """
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    if not scores.any():  # no candidates, or only logits of 0, which no temperature changes
        return 1.0
    right = int(labels.sum())
    targets = np.where(labels, (right + 1) / (right + 2), 1 / (len(labels) - right + 2))

    def slope(inverse):  # of the negative log likelihood, rising in 1 / T
        return float(np.dot(scores, probabilities_of(scores * inverse, 1.0) - targets))

    least, most = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
    if slope(least) >= 0:
        return HIGHEST_TEMPERATURE
    if slope(most) <= 0:
        return LOWEST_TEMPERATURE
    from scipy.optimize import brentq  # missing from an installation for ONNX alone

    return 1 / brentq(slope, least, most)


def fit_temperatures(scored: dict[str, tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """A temperature for each type, from the logits of its candidates and whether each is an entity. If these
    temperatures would give the candidates a higher negative log likelihood than 1 for all types, it is 1 for all.

    A type with n candidates gets the geometric mean of the temperature fitted to it and the one fitted to all types,
    with the weights n and ``PRIOR_CANDIDATES``, because a temperature fitted to few candidates is mostly chance.
    """
    scores, labels = (np.concatenate([[], *of_all]) for of_all in zip(*scored.values())) if scored else ([], [])
    of_all_types = fit_temperature(scores, labels)
    fitted = []
    for of_type in scored.values():
        count = len(of_type[0])
        own = np.log(fit_temperature(*of_type))
        mean = (count * own + PRIOR_CANDIDATES * np.log(of_all_types)) / (count + PRIOR_CANDIDATES)
        fitted.append(round(float(np.exp(mean)), 4))

    def loss(temperatures):
        return sum(negative_log_likelihood(*of_type, one) for of_type, one in zip(scored.values(), temperatures))

    return min(fitted, [1.0] * len(fitted), key=loss)  # fitted, if they are equal


def temperatures_for(examples: list[Example], candidates: Found, types: list[str], allow_overlap: bool) -> list[float]:
    """The temperatures of ``types``, fitted to labeled texts as in :func:`fit_temperatures`. ``candidates`` has, for
    each text, all entities that score above a low logit. If entities may not overlap, candidates that overlap a better
    one do not count, as they are never found."""
    counted = candidates if allow_overlap else list(map(without_overlaps, candidates))
    return fit_temperatures(scored_by_type(examples, counted, types))
