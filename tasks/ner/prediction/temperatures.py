"""From scores to probabilities: a temperature for each entity type, fitted on labeled data.

A span with the logit s is an entity of its type with the probability sigmoid(s / T). The temperature T of the type is
the one with the least negative log likelihood of labeled data (Guo et al. 2017, arXiv 1706.04599, section 4.2, here of
two classes). Above 1 it says that the scores promise too much. It changes neither scores nor which spans are entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tasks.ner.examples import Entity, spans_of, without_overlaps

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 50.0
# As many candidates must a type have to count as much for its temperature as all types together.
PRIOR_CANDIDATES = 50


def probabilities_of(scores: np.ndarray, temperatures: np.ndarray | float) -> np.ndarray:
    """sigmoid(score / temperature), float64, for logits of any size."""
    return np.exp(-np.logaddexp(0, -np.asarray(scores, dtype=np.float64) / temperatures))


def negative_log_likelihood(scores: np.ndarray, labels: np.ndarray, temperature: np.ndarray | float = 1.0) -> float:
    """Sum over candidates of -log p, where p is the probability of what is true. ``labels`` are 1 where the candidate
    is an entity, else 0, or anything between; ``temperature`` is one, or one for each candidate."""
    scaled = np.asarray(scores, dtype=np.float64) / temperature
    return float(np.sum(np.logaddexp(0.0, scaled) - labels * scaled))


def fit_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """The temperature with the least negative log likelihood of candidates, from ``LOWEST_TEMPERATURE`` to
    ``HIGHEST_TEMPERATURE``; 1 where there is no candidate. The likelihood is convex in 1 / T.

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
    gold: Sequence[Iterable[Entity]], candidates: list[list[Entity]], types: list[str], allow_overlap: bool
) -> list[float]:
    """The temperatures of ``types`` for labeled texts, as of :func:`fit_temperatures`. ``candidates`` are for each text
    all entities that score above a low logit. Where entities do not overlap, candidates that a better one overlaps do
    not count, as they are never found."""
    scored = {kind: ([], []) for kind in types}
    for wanted, entities in zip(map(spans_of, gold), candidates):
        for entity in entities if allow_overlap else without_overlaps(entities):
            scores, labels = scored[entity.type]
            scores.append(entity.score)
            labels.append(entity[:3] in wanted)
    return fit_temperatures(
        {kind: (np.array(scores, float), np.array(labels, bool)) for kind, (scores, labels) in scored.items()}
    )
