"""Tables of the ablation of positions: published beside ours, longer texts, how far trained frequencies move."""

import statistics

import numpy as np
from scipy.stats import spearmanr

from tasks.common.reports.tables import as_markdown, mean_and_deviation
from tasks.language_model.evaluation import UNSCALED
from tasks.language_model.report import final_loss

# kexue.fm 10862: losses of a language model of about 1e9 parameters, by where RoPE turns.
PUBLISHED = {
    "qk": 2.712, "qkvo": 2.719, "k": 2.769, "vo": 2.770, "qkv": 2.783,
    "none": 2.795, "o": 2.841, "q": 2.851, "v": 2.856,
}  # fmt: skip


def over(rows, name, base="qk"):
    """Differences of the held-out loss to that of ``base`` with the same seed; [] where there is none."""
    bases = {cell["seed"]: final_loss(cell) for cell in rows.get(base, ())}
    return [final_loss(cell) - bases[cell["seed"]] for cell in rows[name] if cell["seed"] in bases]


def mean_loss(cells):
    """Mean of the held-out losses over seeds."""
    return statistics.fmean(final_loss(cell) for cell in cells)


def rank_correlation(losses):
    """Spearman's rho of ``losses`` (placement -> loss) with the published ones, and its p-value (two-sided); None for
    less than three placements."""
    names = [name for name in PUBLISHED if name in losses]
    if len(names) < 3:
        return None
    rho, p_value = spearmanr([PUBLISHED[name] for name in names], [losses[name] for name in names])
    return float(rho), float(p_value)


def placements(rows, titles):
    """Lines: the published table beside ours, and the rank correlation."""
    ours = {name: mean_loss(rows[name]) for name in PUBLISHED if name in rows}
    if not ours:
        return []
    ranks = {name: rank for rank, name in enumerate(sorted(ours, key=ours.get), 1)}
    table = [
        [titles[name], f"{PUBLISHED[name]:.3f}", mean_and_deviation([final_loss(cell) for cell in rows[name]]),
         f"{PUBLISHED[name] - PUBLISHED['qk']:+.3f}", _signed(over(rows, name)), place, ranks[name]]
        for place, name in enumerate(PUBLISHED, 1) if name in ours
    ]  # fmt: skip
    head = ["RoPE turns", "published", "ours", "published - QK", "ours - QK", "published place", "our place"]
    lines = ["## Where RoPE turns", "", *_markdown_table(head, table)]
    correlation = rank_correlation(ours)
    if correlation is not None:
        rho, p_value = correlation
        said = f"{rho:.3f} (p = {p_value:.3g}, {len(ours)} placements).{_each_seed(rows)}"
        lines += ["", f"Spearman rank correlation of our mean losses with the published ones: {said}"]
    return lines


def _each_seed(rows):
    """The rank correlation of each seed that has all placements of the table, in words."""
    said = []
    for seed in sorted({cell["seed"] for cells in rows.values() for cell in cells}):
        losses = {name: final_loss(cell) for name in rows for cell in rows[name] if cell["seed"] == seed}
        if all(name in losses for name in PUBLISHED):
            said.append(f"{rank_correlation(losses)[0]:.3f} with seed {seed}")
    return f" Each seed alone: {', '.join(said)}." if said else ""


def others(rows, titles):
    """Lines: what is not in the published table."""
    table = [
        [titles[name], mean_and_deviation([final_loss(cell) for cell in cells]), _signed(over(rows, name))]
        for name, cells in rows.items()
        if name not in PUBLISHED
    ]
    return ["## Other ways to know a position", "", *_markdown_table(["", "ours", "ours - QK"], table)] if table else []


def losses_at(cells, scaling=UNSCALED):
    """dict from length to the losses there, one for each seed."""
    losses = {}
    for cell in cells:
        for entry in cell["lengths"]:
            if entry["scaling"] == scaling:
                losses.setdefault(entry["length"], []).append(entry["loss"])
    return losses


def scalings(cells):
    """Names of the scalings that were measured, ``"none"`` first."""
    return list(dict.fromkeys(entry["scaling"] for cell in cells for entry in cell["lengths"]))


def longer_texts(rows, titles, lengths):
    """Lines: losses on texts longer than those of training, without and with scaled frequencies."""
    table = []
    for name, cells in rows.items():
        for scaling in scalings(cells):
            losses = losses_at(cells, scaling)
            title = titles[name] if scaling == UNSCALED else f"{titles[name]}, {scaling}"
            shown = (mean_and_deviation(losses[length]) if length in losses else "" for length in lengths)
            table.append([title, *shown])
    head = ["", *(f"{length} ({length // lengths[0]}x)" for length in lengths)]
    note = (
        "The same characters at every length: longer texts give the later ones more before them. Empty: not defined, "
        "there is no vector for these positions."
    )
    return ["## Texts longer than in training", "", note, "", *_markdown_table(head, table)]


def learned_theta(rows, titles):
    """Lines: how far the trained frequencies move."""
    table = []
    for name, cells in rows.items():
        if "theta_end" in cells[0]:
            start, end = (np.array([cell[name] for cell in cells]) for name in ("theta_start", "theta_end"))
            changes = np.abs(end - start) / np.abs(start)  # [seeds, pairs]
            shown = (changes.max(axis=1), changes.mean(axis=1), changes[:, 0], changes[:, -1])
            table.append([titles[name], *(mean_and_deviation(of_seeds.tolist(), 3) for of_seeds in shown)])
    if not table:
        return []
    head = ["", "largest relative change", "mean", "of the fastest", "of the slowest"]
    note = (
        "The change is |after - before| / before. A step of Adam is about the learning rate, whatever the gradient is: "
        "frequencies that are less than that can change by many times themselves."
    )
    return ["## Learned frequencies", "", note, "", *_markdown_table(head, table)]


def _signed(values):
    """``mean_and_deviation`` with its sign; empty without a seed that QK has too."""
    if not values:
        return ""
    return mean_and_deviation(values) if statistics.fmean(values) < 0 else f"+{mean_and_deviation(values)}"


def _markdown_table(head, rows):
    return as_markdown([dict(zip(head, row)) for row in rows], head).splitlines()
