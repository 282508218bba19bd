"""The long-range decay of RoPE as figures and tables: the bound of kexue.fm 8265, and dot products of all-ones vectors.

``options`` come from ``paddle-rope decay``: head_dim, base, max_distance, query_position.
"""

import numpy as np

from paddle_rope.tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png
from paddle_rope.tasks.experiments import long_range_decay as decay

ZOOM = 50  # distances at which the period of theta = 1, 6.28, can be seen
FAR = 2000  # from this distance on, the dot products are drawn by octaves


def contents(options):
    """The files of ``paddle-rope decay``, name -> bytes, and lines that describe them."""
    query, reach = options.query_position, options.max_distance
    theta = decay.frequencies(options.head_dim, options.base)
    distances, keys = np.arange(reach + 1), np.arange(max(0, query - reach), query + reach + 1)  # on either side
    bound, ones = decay.mean_partial_sums(theta, distances), decay.ones_scores(theta, keys - query)
    quarter = decay.quarter_period(theta)
    files = {
        "decay_bound.png": draw_bound(options, distances, bound, quarter),
        "decay_ones.png": (
            draw_ones(options, keys, ones, quarter)
            if reach < FAR
            else draw_octaves(options, ones[keys >= query], quarter)
        ),
    }
    return files, describe(reach, quarter, bound, ones[keys >= query])


def draw_bound(options, distances, bound, quarter):
    """The figure of kexue.fm 8265, as PNG bytes."""
    figure, axes = new_figure(8, 4.5)
    top = (options.head_dim // 2 + 1) / 2
    axes.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$, and all $\theta_i = 1$: constant")
    _draw_rope(axes, options, distances, bound, quarter, 0)
    axes.set_title(f"Decay of the bound: head_dim d = {options.head_dim}, base {options.base:g}")
    axes.set_xlabel("relative distance m - n")
    axes.set_ylabel(r"mean of $|S_1|, \ldots, |S_{d/2}|$")
    axes.set_ylim(0, 1.4 * top)
    axes.legend(loc="upper right")
    return png(figure)


def draw_ones(options, keys, ones, quarter):
    """A figure of RoPE and, below it and close to the query, the counter-examples, as PNG bytes."""
    query, top = options.query_position, options.head_dim
    figure, (above, below) = new_figure(8, 7, 2, 1, height_ratios=[3, 2])
    _draw_rope(above, options, keys, ones, quarter, query)
    averages = decay.octave_averages(ones[keys >= query])
    label = r"averages over octaves, $2^k \leq n - m < 2^{k+1}$"
    starts = query + 2.0 ** np.arange(len(averages))
    above.hlines(averages, starts, 2 * starts - query, color=ORANGE, lw=2, label=label)
    above.set_title(f"All-ones q and k: head_dim d = {top}, base {options.base:g}, query at position m = {query}")
    above.set_ylim(min(0, 1.2 * ones.min()), 1.4 * top)
    shown = keys[np.abs(keys - query) <= ZOOM]
    near = np.linspace(shown[0], shown[-1], 2001)
    below.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$: constant")
    below.plot(near, top * np.cos(near - query), color=GREEN, lw=1, label=r"all $\theta_i = 1$: $d\,\cos(n - m)$")
    below.plot(shown, top * np.cos(shown - query), ".", color=GREEN, ms=4)
    below.set_title("Counter-examples: no decay")
    below.set_ylim(-1.15 * top, 2.1 * top)
    for axes in (above, below):
        axes.axhline(0, color=GRAY, lw=0.6)
        axes.set_xlabel("key position n")
        axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
        axes.ticklabel_format(useOffset=False, style="plain", axis="x")
        axes.legend(loc="upper right")
    return png(figure)


def draw_octaves(options, ones, quarter):
    """A figure of RoPE on a logarithmic axis, as PNG bytes: the averages fall by about the same amount per octave."""
    figure, axes = new_figure(8, 4.5)
    averages = decay.octave_averages(ones)
    starts = 2.0 ** np.arange(len(averages))
    _draw_rope(axes, options, np.arange(1, ones.size), ones[1:], quarter, 0)
    axes.hlines(averages, starts, 2 * starts, color=ORANGE, lw=2, zorder=3, label="averages over octaves")
    axes.axhline(0, color=GRAY, lw=0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(f"All-ones q and k: head_dim d = {options.head_dim}, base {options.base:g}")
    axes.set_xlabel("relative distance n - m")
    axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
    axes.legend(loc="upper right")
    return png(figure)


def _draw_rope(axes, options, places, values, quarter, query):
    """Draw the curve of RoPE, and a line where the slowest pair has made a quarter turn, if that is in the range."""
    label = rf"RoPE, $\theta_i = {options.base:g}^{{-2i/d}}$"
    axes.plot(places, values, color=BLUE, lw=1.2 if places.size < 2000 else 0.5, label=label)
    axes.set_xlim(places[0], places[-1])
    if quarter <= options.max_distance:
        label = f"quarter period of the slowest pair: {quarter:.0f}"
        axes.axvline(query + quarter, color=GREEN, lw=1.2, ls="-.", label=label)


def describe(reach, quarter, bound, ones):
    """The lines that describe the figures; ``bound`` and ``ones`` are the curves of RoPE from distance 0 on."""
    at = sorted({0, *(4**k for k in range(reach.bit_length()) if 4**k < reach), reach})
    return [
        "distance   " + " ".join(f"{x:>8}" for x in at),
        "mean |S_j| " + " ".join(f"{bound[x]:8.2f}" for x in at),
        "ones, g    " + " ".join(f"{ones[x]:8.2f}" for x in at),
        f"quarter period of the slowest pair: {quarter:.1f}; up to it the trend of g falls",
    ]
