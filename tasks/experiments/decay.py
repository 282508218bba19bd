"""The long-range decay of RoPE as figures and tables: the bound of kexue.fm 8265, and dot products of all-ones vectors.

``options`` are those of ``paddle-rope decay``: head_dim, base, max_distance, query_position.
"""

import numpy as np

from paddle_rope import long_range_decay as decay
from tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png
from tasks.common.reports.tables import as_csv

CURVES = ("rope", "theta_0", "theta_1")  # columns of the CSV files
ZOOM = 50  # distances at which the period of theta = 1, 6.28, can be seen


def contents(options):
    """The four files of ``paddle-rope decay``, bytes in its order, and lines that describe them."""
    pairs, query, reach = options.head_dim // 2, options.query_position, options.max_distance
    thetas = dict(zip(CURVES, (decay.frequencies(options.head_dim, options.base), np.zeros(pairs), np.ones(pairs))))
    distances = np.arange(reach + 1)
    bound = {name: decay.mean_partial_sums(theta, distances) for name, theta in thetas.items()}
    keys = np.arange(max(0, query - reach), query + reach + 1)  # on either side of the query
    ones = {name: decay.ones_scores(theta, keys - query) for name, theta in thetas.items()}
    files = (
        draw_bound(options, distances, bound),
        _csv({"distance": distances, **bound}),
        draw_ones(options, keys, ones),
        _csv({"key_position": keys, "distance": keys - query, **ones}),
    )
    return files, describe(options, bound["rope"], ones["rope"][keys >= query])


def _csv(columns):
    """{name: numbers} -> bytes; reading a float gives the same number again."""
    rows = zip(*(values.tolist() for values in columns.values()))
    return as_csv([dict(zip(columns, row)) for row in rows], columns).encode("ascii")


def draw_bound(options, distances, curves):
    """The figure of 8265: PNG, bytes."""
    figure, axes = new_figure(8, 4.5)
    top = curves["theta_0"][0]
    axes.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$, and all $\theta_i = 1$: constant")
    _draw_rope(axes, options, distances, curves["rope"])
    _mark_quarter_periods(axes, options, 0)
    axes.set_title(f"Decay of the bound: head_dim d = {options.head_dim}, base {options.base:g}")
    axes.set_xlabel("relative distance m - n")
    axes.set_ylabel(r"mean of $|S_1|, \ldots, |S_{d/2}|$")
    axes.set_xlim(0, options.max_distance)
    axes.set_ylim(0, 1.4 * top)
    return _finish(figure, axes)


def draw_ones(options, keys, curves):
    """RoPE above, the counter-examples close to the query below: PNG, bytes."""
    query, top = options.query_position, options.head_dim
    figure, (above, below) = new_figure(8, 7, 2, 1, height_ratios=[3, 2])
    _draw_rope(above, options, keys, curves["rope"])
    left, right = keys[0], keys[-1]
    for k, average in enumerate(decay.octave_averages(curves["rope"][keys >= query])):  # a step for each
        label = r"average over an octave, $2^k \leq n - m < 2^{k+1}$" if k == 0 else None
        above.plot([query + 2**k, query + 2 ** (k + 1)], [average, average], color=ORANGE, lw=2, label=label)
    _mark_quarter_periods(above, options, query, left)
    if query:
        above.axvline(query, color=GRAY, lw=1, ls=":", label=f"query position {query}")
    above.set_title(
        f"All-ones q and k: head_dim d = {options.head_dim}, base {options.base:g}, query at position m = {query}"
    )
    above.set_ylim(min(0, 1.2 * curves["rope"].min()), 1.4 * top)
    above.set_xlim(left, right)

    near = np.linspace(max(left, query - ZOOM), min(right, query + ZOOM), 2001)
    below.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$: constant")
    below.plot(near, top * np.cos(near - query), color=GREEN, lw=1, label=r"all $\theta_i = 1$: $d\,\cos(n - m)$")
    shown = np.abs(keys - query) <= ZOOM
    below.plot(keys[shown], curves["theta_1"][shown], ".", color=GREEN, ms=4)
    below.set_title(f"Counter-examples: no decay (keys within {min(ZOOM, options.max_distance)} of the query)")
    below.set_ylim(-1.15 * top, 1.55 * top)
    below.set_xlim(near[0], near[-1])
    for axes in (above, below):
        axes.axhline(0, color=GRAY, lw=0.6)
        axes.set_xlabel("key position n")
        axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
        axes.ticklabel_format(useOffset=False, style="plain", axis="x")
    below.legend(loc="upper right", ncols=2)
    return _finish(figure, above)


def _draw_rope(axes, options, places, values):
    label = rf"RoPE, $\theta_i = {options.base:g}^{{-2i/d}}$"
    axes.plot(places, values, color=BLUE, lw=1.2 if places.size < 2000 else 0.5, label=label)


def _mark_quarter_periods(axes, options, query, left=0):
    """A line where the slowest pair has turned by a quarter, if that is in the range."""
    quarter = decay.quarter_period(decay.frequencies(options.head_dim, options.base))
    label = f"quarter period of the slowest pair: {quarter:.0f}"
    for place in (query + quarter, query - quarter) if quarter <= options.max_distance else ():
        if place >= left:
            axes.axvline(place, color=GREEN, lw=1.2, ls="-.", label=label)
            label = None


def _finish(figure, axes):
    for line in axes.legend(loc="upper right").get_lines():
        line.set_linewidth(max(1.5, line.get_linewidth()))
    return png(figure)


def describe(options, bound, ones):
    """What the figures show, a list of lines; ``bound`` and ``ones`` are the curves of RoPE from distance 0 on."""
    reach = options.max_distance
    at = sorted({0, *(4**k for k in range(reach.bit_length()) if 4**k < reach), reach})
    theta = decay.frequencies(options.head_dim, options.base)
    quarter = decay.quarter_period(theta)
    octaves = decay.octave_averages(ones)
    last = decay.falls_until(octaves)
    top = options.head_dim
    same = f"mean |S_j| = {(top / 2 + 1) / 2:g} at every distance"
    verdict = (
        "the range ends before it: g is in its decreasing part"
        if reach <= quarter
        else "the range goes past it: g has left its decreasing part"
    )
    whole = ", the last whole one in the range" if last == octaves.size - 1 else ""
    return [
        "distance   " + " ".join(f"{x:>8}" for x in at),
        "mean |S_j| " + " ".join(f"{bound[x]:8.2f}" for x in at),
        "ones, g    " + " ".join(f"{ones[x]:8.2f}" for x in at),
        f"g itself falls at every step up to distance {decay.falls_until(ones)} and is lowest, {ones.min():.2f}, at "
        f"{ones.argmin()}",
        f"trend: its averages over octaves fall up to distances {2**last}-{2 ** (last + 1) - 1} ({octaves[last]:.2f})"
        f"{whole}",
        f"quarter period of the slowest pair (theta = {theta.min():.4g}): {quarter:.1f}; {verdict}",
        f"all theta = 0: {same}, g = {top}: no decay",
        f"all theta = 1: {same}, g = {top} cos(n - m): periodic, no decay",
    ]
