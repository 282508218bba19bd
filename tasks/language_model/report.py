"""The report of language models: losses against the published ones, loss curves, longer texts."""

import statistics
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from paddle_rope.tasks.common.reports.figures import new_figure, png
from paddle_rope.tasks.common.reports.tables import as_markdown, mean_and_deviation
from paddle_rope.tasks.language_model.arguments import UNSCALED

# kexue.fm 10862: losses of a language model of about 1e9 parameters, by where RoPE turns.
PUBLISHED = {
    "qk": 2.712, "qkvo": 2.719, "k": 2.769, "vo": 2.770, "qkv": 2.783,
    "none": 2.795, "o": 2.841, "q": 2.851, "v": 2.856,
}  # fmt: skip
SMOOTHED = 9  # entries of the training loss in a running mean
LONGER_NOTE = "The same characters at every length. Empty: there is no vector for these positions."

Runs = dict[str, list[dict[str, Any]]]  # variant -> results of its runs, one for each seed


def report(results: list[dict[str, Any]]) -> dict[str, str | bytes]:
    """``results.md`` and its figure, from a dict for each finished run, with ``variant``, ``seed`` and the
    content of ``metrics.json``."""
    variants: Runs = {}
    for result in results:
        variants.setdefault(result["variant"], []).append(result)
    longer: dict = {}  # variant, also with scaled frequencies -> length -> the losses of all seeds
    for name, runs in variants.items():
        for entry in (entry for run in runs for entry in run.get("lengths", ())):
            scaled = "" if entry["scaling"] == UNSCALED else f", {entry['scaling']}"
            longer.setdefault(name + scaled, {}).setdefault(str(entry["length"]), []).append(entry["loss"])
    text = f"# Character language models\n\n## Held-out loss\n\n{losses(variants)}\n{rank_correlation(variants)}"
    if longer:
        rows = [
            {"": name, **{length: mean_and_deviation(found) for length, found in of_name.items()}}
            for name, of_name in longer.items()
        ]
        text += f"\n## Texts longer than in training\n\n{LONGER_NOTE}\n\n{as_markdown(rows)}"
    text += "\n## Loss curves\n\n![curves](curves.png)\n"
    return {"results.md": text, "curves.png": png(draw_curves(variants))}


def losses(variants: Runs) -> str:
    """A table of held-out losses after the last step, of published losses, and of how far both are above QK (with the
    same seed)."""
    bases = {run["seed"]: _final_loss(run) for run in variants.get("qk", ())}
    rows = []
    for name, runs in variants.items():
        row = {"": name, "held-out loss": mean_and_deviation(list(map(_final_loss, runs)))}
        if over_qk := [_final_loss(run) - bases[run["seed"]] for run in runs if run["seed"] in bases]:
            row["over QK"] = f"{'' if statistics.fmean(over_qk) < 0 else '+'}{mean_and_deviation(over_qk)}"
        if bases and name in PUBLISHED:
            row |= {"published": f"{PUBLISHED[name]:.3f}", "over its QK": f"{PUBLISHED[name] - PUBLISHED['qk']:+.3f}"}
        rows.append({**row, "s/step": f"{statistics.fmean(run['seconds_per_step'] for run in runs):.3f}"})
    return as_markdown(rows)


def rank_correlation(variants: Runs) -> str:
    """Spearman's rho of our mean losses with the published ones, and its p-value (two-sided), in words; "" for
    fewer than three placements."""
    ours = {name: statistics.fmean(map(_final_loss, variants[name])) for name in PUBLISHED if name in variants}
    if len(ours) < 3:
        return ""
    rho, p_value = spearmanr([PUBLISHED[name] for name in ours], list(ours.values()))
    return f"Rank correlation with the published losses: {rho:.3f} (p = {p_value:.3g}, {len(ours)} placements)\n"


def draw_curves(variants: Runs) -> Any:
    """Training loss on the left, held-out loss on the right: means and min-to-max bands over seeds."""
    figure, panels = new_figure(11, 4.5, 1, 2, sharey=True)
    titles = {"training": f"training loss, running mean of {SMOOTHED} entries", "held_out": "held-out loss"}
    for axes, (kind, title) in zip(panels, titles.items()):
        for number, (name, runs) in enumerate(variants.items()):
            (steps, *_), values = np.moveaxis(np.array([run[kind] for run in runs]), -1, 0)
            if kind == "training":
                width = min(SMOOTHED, len(steps))
                steps = steps[width - 1 :]
                values = np.lib.stride_tricks.sliding_window_view(values, width, axis=1).mean(axis=-1)
            (line,) = axes.plot(
                steps, values.mean(axis=0), label=name, color=f"C{number % 10}", ls="-" if number < 10 else "--"
            )
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2, lw=0)
        axes.set_title(title)
        axes.set_xlabel("step")
    panels[0].set_ylabel("nats a character")
    panels[1].legend(fontsize="x-small", ncols=2)
    return figure


def _final_loss(run):
    return run["dev"]["loss"]
