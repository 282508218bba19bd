"""Whether the probabilities of found entities say how often they are right."""

from collections.abc import Iterable

import numpy as np

from paddle_rope.tasks.common.reports.tables import print_table
from paddle_rope.tasks.ner.arguments import of_types
from paddle_rope.tasks.ner.calibration import probabilities_of
from paddle_rope.tasks.ner.examples import Example, Found

BINS = 10


def reliability(examples: Iterable[Example], found: Found, types: list[str], temperatures: float | list[float]) -> dict:
    """The reliability of the probabilities of found entities, whose ``score`` is the logit: dict with ``entities``, the
    number of found ones, ``temperatures``, a number for each type, and the results of :func:`calibration`,
    ``calibrated`` and ``uncalibrated`` (all temperatures 1)."""
    of_type = dict(zip(types, of_types(temperatures, len(types))))
    rows = [
        (entity.score, of_type[entity.type], entity[:3] in gold)
        for gold, entities in zip((example.spans for example in examples), found)
        for entity in entities
        if np.isfinite(entity.score)  # not forced by the user
    ]
    scores, divisors, labels = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return {
        "entities": len(rows),
        "temperatures": of_type,
        "calibrated": calibration(scores, labels, divisors),
        "uncalibrated": calibration(scores, labels),
    }


def calibration(scores: np.ndarray, labels: np.ndarray, temperatures: np.ndarray | float = 1.0) -> dict:
    """How far the probabilities of entities are from the share that is right. ``scores`` are their logits, from
    which ``temperatures`` make probabilities; ``labels`` are 1 where the entity is right, else 0.

    The bins hold equal numbers of entities, from the least probable to the most (Nguyen and O'Connor 2015, arXiv
    1508.05154). The expected calibration error (Naeini et al. 2015) is the distance between mean probability and share
    in each bin, averaged over the entities. It is never quite 0, because the share among the n entities of a bin is off
    by chance, by sqrt(p (1 - p) / n).

    The dict has ``expected_calibration_error``, None if there is no entity; and at most ``BINS`` ``bins``, dicts with
    ``from`` and ``to``, the lowest and highest probability, ``entities``, ``probability``, their mean, and ``correct``,
    the share that is right.
    """
    probabilities = probabilities_of(scores, temperatures)
    order = np.argsort(probabilities, kind="stable")
    bins = [
        {
            "from": float(probabilities[rows[0]]),
            "to": float(probabilities[rows[-1]]),
            "entities": len(rows),
            "probability": float(probabilities[rows].mean()),
            "correct": float(labels[rows].mean()),
        }
        for rows in np.array_split(order, BINS)
        if len(rows)
    ]
    distance = sum(row["entities"] * abs(row["probability"] - row["correct"]) for row in bins)
    return {"expected_calibration_error": distance / len(scores) if bins else None, "bins": bins}


def draw_reliability(result: dict, title: str) -> np.ndarray:
    """The result of :func:`reliability` as a picture, uint8 ``[height, width, 3]``: a point for each bin."""
    from paddle_rope.tasks.common.reports import figures  # with matplotlib, only for pictures

    figure, axes = figures.new_figure(4.5, 4.2)
    axes.plot([0, 1], [0, 1], color=figures.GRAY, linewidth=1, linestyle="--")
    for name, color, marker in (("uncalibrated", figures.ORANGE, "o"), ("calibrated", figures.BLUE, "s")):
        bins, error = result[name]["bins"], result[name]["expected_calibration_error"]
        points = [(row["probability"], row["correct"]) for row in bins]
        axes.plot(*zip(*points), color=color, marker=marker, markersize=4, label=f"{name}: error {error:.4f}")
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="mean probability", ylabel="share that is correct")
    axes.set_title(f"{title}: {result['entities']} found entities", fontsize=9)
    axes.legend(loc="upper left", fontsize=8)
    return figures.pixels(figure)


def print_reliability(result: dict, what: str = "entities") -> None:
    """Print the result of :func:`reliability` as a table; ``what`` is found."""
    if not result["entities"]:
        return
    title = f"reliability of {result['entities']} found {what}: equal numbers of them in each row"
    means = ("probability", "correct")
    rows = [
        (f"{one['from']:.3f} to {one['to']:.3f}", str(one["entities"]), *(f"{one[mean]:.3f}" for mean in means))
        for one in result["calibrated"]["bins"]
    ]
    print_table(title, ("probability", what, "mean", "correct"), rows)
    print(error_line(result, what))


def error_line(result: dict, what: str = "entities") -> str:
    """The expected calibration error of the result of :func:`reliability`, with the temperatures and without."""
    if not result["entities"]:
        return "expected calibration error: nothing is found"
    after, before = (result[name]["expected_calibration_error"] for name in ("calibrated", "uncalibrated"))
    line = f"expected calibration error of {result['entities']} found {what}: {after:.4f}"
    if set(result["temperatures"].values()) == {1.0}:
        return f"{line}; all temperatures are 1"
    return f"{line}; {before:.4f} with all temperatures 1"
