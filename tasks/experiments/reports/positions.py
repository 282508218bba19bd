"""The report of plans that compare ways to know a position: published losses beside ours, longer texts, and how far
trained frequencies move."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from tasks.common.reports.figures import BLUE, GRAY, ORANGE, new_figure, png
from tasks.common.reports.tables import as_markdown, mean_and_deviation
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
LONGER_NOTE = "The same characters at every length. Empty: there is no vector for these positions."
THETA_NOTE = "The change is |after - before| / before."

Runs = dict[str, list[dict[str, Any]]]  # variant -> what its runs left, one for each seed


def report(results: list[dict[str, Any]]) -> dict[str, str | bytes]:
    """The files of the report, see :func:`tasks.experiments.table.get_report`."""
    variants = by_variant(results)
    figures = {"lengths.png": draw_lengths(variants)}
    if any("theta_end" in result for result in results):
        figures["theta.png"] = draw_theta(variants)
    longer = _table(
        {"": title, **{str(n): mean_and_deviation([one["loss"] for one in entries]) for n, entries in lengths.items()}}
        for title, lengths in at_lengths(variants).items()
    )
    ours = {name: statistics.fmean(map(final_loss, variants[name])) for name in PUBLISHED if name in variants}
    sections = {
        "Where RoPE turns": placements(variants, ours),
        "Spearman rank correlation of our mean losses with the published ones": rank_correlation(ours),
        "Other ways to know a position": _table(
            {"": title_of(name), "ours": _loss(runs), "ours - QK": over_qk(variants, name)}
            for name, runs in variants.items()
            if name not in PUBLISHED
        ),
        "Texts longer than in training": f"{LONGER_NOTE}\n\n{longer}",
        "Learned frequencies": learned_theta(variants),
        "Figures": "\n\n".join(f"![{name.removesuffix('.png')}]({name})" for name in figures),
    }
    text = "\n".join(["# Positions in a character language model", "", *setting(results), ""])
    text += "".join(f"\n## {title}\n\n{content}\n" for title, content in sections.items() if content)
    return {"results.md": text, **{name: png(figure) for name, figure in figures.items()}}


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


def placements(variants: Runs, ours: dict[str, float]) -> str:
    """The published table beside our mean losses."""
    places = sorted(ours, key=ours.get)
    return _table(
        {
            "RoPE turns": title_of(name),
            "published": f"{PUBLISHED[name]:.3f}",
            "ours": _loss(variants[name]),
            "published - QK": f"{PUBLISHED[name] - PUBLISHED['qk']:+.3f}",
            "ours - QK": over_qk(variants, name),
            "published place": list(PUBLISHED).index(name) + 1,
            "our place": places.index(name) + 1,
        }
        for name in ours
    )


def at_lengths(variants: Runs) -> dict[str, dict[int, list[dict]]]:
    """Measurements in texts of each length: title of a variant, or of it with scaled frequencies -> length -> the
    entries of all seeds."""
    found: dict = {}
    for name, runs in variants.items():
        for entry in (entry for run in runs for entry in run["lengths"]):
            scaled = "" if entry["scaling"] == UNSCALED else f", {entry['scaling']}"
            found.setdefault(title_of(name) + scaled, {}).setdefault(entry["length"], []).append(entry)
    return found


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


def draw_lengths(variants: Runs) -> Any:
    """Left: loss against the length of the text; right: against the position in the longest texts."""
    figure, (left, right) = new_figure(12, 5, 1, 2)
    for number, (title, lengths) in enumerate(at_lengths(variants).items()):
        style = {"color": f"C{number % 10}", "ls": "-" if number < 10 else "--", "lw": 1.2}
        means = [np.mean([entry["loss"] for entry in entries]) for entries in lengths.values()]
        left.plot(list(lengths), means, marker="o", ms=3, label=title, **style)
        longest = max(lengths)
        stretches = np.mean([entry["by_position"] for entry in lengths[longest]], axis=0)
        right.plot((np.arange(len(stretches)) + 0.5) * longest / len(stretches), stretches, **style)
    of_training = next(iter(variants.values()))[0]["config"]["length"]
    for axes in (left, right):
        axes.axvline(of_training, color=GRAY, lw=0.8, ls=":")
    left.set_xscale("log", base=2)
    left.set_xlabel("length of the text in characters; dotted: length of training")
    left.set_ylabel("held-out loss, mean over seeds")
    right.set_xlabel("position in the longest texts")
    left.legend(fontsize="x-small", ncols=2)
    return figure


def draw_theta(variants: Runs) -> Any:
    """Trained frequencies against where they started, each seed a line."""
    figure, (left, right) = new_figure(11, 4.5, 1, 2)
    trained = {name: runs for name, runs in variants.items() if "theta_end" in runs[0]}
    for (name, runs), color in zip(trained.items(), (BLUE, ORANGE)):
        start, *_ = starts = np.array([run["theta_start"] for run in runs])
        ends, style = np.array([run["theta_end"] for run in runs]), {"marker": "o", "ms": 3, "lw": 0.8, "color": color}
        left.plot(ends.T, **style)[0].set_label(title_of(name))
        right.plot((np.abs(ends - starts) / starts).T, **style)
    left.plot(start, color=GRAY, ls="--", label="start: 10000^(-2i/d)")
    left.set_yscale("symlog", linthresh=float(start.min()))
    left.set_ylabel("theta after training")
    right.set_yscale("log")
    right.set_ylabel("relative change")
    for axes in (left, right):
        axes.set_xlabel("pair i")
    left.legend()
    return figure


def _loss(runs):
    return mean_and_deviation([final_loss(run) for run in runs])


def _table(rows):
    rows = list(rows)
    return as_markdown(rows, list(dict.fromkeys(name for row in rows for name in row))).rstrip() if rows else ""
