"""The report of plans that compare ways to know a position: published losses beside ours, longer texts, and how far
trained frequencies move."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from tasks.common.reports.figures import png
from tasks.common.reports.tables import as_markdown, mean_and_deviation
from tasks.experiments.reports import position_figures as figures
from tasks.experiments.reports.language_models import by_variant, final_loss, setting
from tasks.language_model.evaluation import UNSCALED

# kexue.fm 10862: losses of a language model of about 1e9 parameters, by where RoPE turns.
PUBLISHED = {
    "qk": 2.712, "qkvo": 2.719, "k": 2.769, "vo": 2.770, "qkv": 2.783,
    "none": 2.795, "o": 2.841, "q": 2.851, "v": 2.856,
}  # fmt: skip
TITLES = {
    **{name: "NoPE" if name == "none" else name.upper() for name in PUBLISHED},
    "learned": "learned positions",
    "alibi": "ALiBi",
    "theta": "QK, learned theta",
    "theta_slow": "QK, learned theta, 0.01 x rate",
}
LONGER_NOTE = """\
The same characters at every length: longer texts give the later ones more before them. Empty: not defined, there is no
vector for these positions."""
THETA_NOTE = """\
The change is |after - before| / before. A step of Adam is about the learning rate, whatever the gradient is:
frequencies that are less than that can change by many times themselves."""

Runs = dict[str, list[dict[str, Any]]]  # variant -> what its runs left, one for each seed


def report(results: list[dict[str, Any]]) -> dict[str, str | bytes]:
    """The files of the report, see :data:`tasks.experiments.table.REPORTS`."""
    variants = by_variant(results)
    losses = {name: [final_loss(run) for run in runs] for name, runs in variants.items()}
    published = {name: PUBLISHED[name] for name in PUBLISHED if name in variants}
    ours = {name: statistics.fmean(losses[name]) for name in published}
    correlation = rank_correlation(ours)
    titles = {name: title_of(name) for name in variants}
    drawn = {
        "losses.png": figures.draw_losses(losses, published, titles),
        "lengths.png": figures.draw_lengths(variants, titles, results[0]["config"]["length"]),
    }
    if any("theta_end" in result for result in results):
        drawn["theta.png"] = figures.draw_theta(variants, titles)
    sections = [
        ("Where RoPE turns", placements(variants, published, ours)),
        ("Spearman rank correlation of our mean losses with the published ones", correlation or ""),
        ("Other ways to know a position", others(variants)),
        ("Texts longer than in training", f"{LONGER_NOTE}\n\n{longer_texts(variants)}"),
        ("Learned frequencies", learned_theta(variants)),
        ("Figures", "\n\n".join(f"![{name.removesuffix('.png')}]({name})" for name in drawn)),
    ]
    lines = ["# Positions in a character language model", "", *setting(results)]
    text = "\n".join(lines) + "\n\n" + "\n".join(f"## {title}\n\n{content}\n" for title, content in sections if content)
    return {"results.md": text, **{name: png(figure) for name, figure in drawn.items()}}


def title_of(variant: str) -> str:
    """What a variant is called in tables and figures."""
    return TITLES.get(variant, variant)


def rank_correlation(losses: dict[str, float]) -> str | None:
    """Spearman's rho of losses, by placement, with the published ones, and its p-value (two-sided); None for less than
    three placements."""
    names = [name for name in PUBLISHED if name in losses]
    if len(names) < 3:
        return None
    rho, p_value = spearmanr([PUBLISHED[name] for name in names], [losses[name] for name in names])
    return f"{rho:.3f} (p = {p_value:.3g}, {len(names)} placements)"


def over_qk(variants: Runs, name: str) -> str:
    """Mean and deviation of the held-out loss of a variant over that of QK with the same seed; empty without QK."""
    bases = {run["seed"]: final_loss(run) for run in variants.get("qk", ())}
    values = [final_loss(run) - bases[run["seed"]] for run in variants[name] if run["seed"] in bases]
    if not values:
        return ""
    return f"{'' if statistics.fmean(values) < 0 else '+'}{mean_and_deviation(values)}"


def placements(variants: Runs, published: dict[str, float], ours: dict[str, float]) -> str:
    """The published table beside ours."""
    places = sorted(ours, key=ours.get)
    return _table(
        {
            "RoPE turns": title_of(name),
            "published": f"{loss:.3f}",
            "ours": _loss(variants[name]),
            "published - QK": f"{loss - PUBLISHED['qk']:+.3f}",
            "ours - QK": over_qk(variants, name),
            "published place": list(PUBLISHED).index(name) + 1,
            "our place": places.index(name) + 1,
        }
        for name, loss in published.items()
    )


def others(variants: Runs) -> str:
    """What is not in the published table."""
    names = [name for name in variants if name not in PUBLISHED]
    rows = [{"": title_of(name), "ours": _loss(variants[name])} for name in names]
    return _table({**row, "ours - QK": over_qk(variants, name)} for name, row in zip(names, rows))


def longer_texts(variants: Runs) -> str:
    """Losses on texts longer than those of training, without and with scaled frequencies."""
    rows = []
    for name, runs in variants.items():
        for scaling, losses in losses_at(runs).items():
            title = title_of(name) if scaling == UNSCALED else f"{title_of(name)}, {scaling}"
            rows.append({"": title, **{str(length): mean_and_deviation(values) for length, values in losses.items()}})
    return _table(rows)


def losses_at(runs: list[dict[str, Any]]) -> dict[str, dict[int, list[float]]]:
    """scaling -> length -> losses there, one for each seed; without scaling first."""
    losses: dict = {}
    for run in runs:
        for entry in run["lengths"]:
            losses.setdefault(entry["scaling"], {}).setdefault(entry["length"], []).append(entry["loss"])
    return losses


def learned_theta(variants: Runs) -> str:
    """How far the trained frequencies move."""
    rows = []
    for name, runs in variants.items():
        if "theta_end" in runs[0]:
            start, end = (np.array([run[key] for run in runs]) for key in ("theta_start", "theta_end"))
            changes = np.abs(end - start) / np.abs(start)  # [seeds, pairs]
            columns = {"largest relative change": changes.max(axis=1), "mean": changes.mean(axis=1)}
            columns |= {"of the fastest": changes[:, 0], "of the slowest": changes[:, -1]}
            shown = {title: mean_and_deviation(values.tolist(), 3) for title, values in columns.items()}
            rows.append({"": title_of(name), **shown})
    return f"{THETA_NOTE}\n\n{_table(rows)}" if rows else ""


def _loss(runs):
    return mean_and_deviation([final_loss(run) for run in runs])


def _table(rows):
    rows = list(rows)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row))).rstrip() if rows else ""
