#!/usr/bin/env python
"""Draw the long-range decay of RoPE: the bound of kexue.fm 8265 and the dot products of all-ones vectors.

Writes decay_bound.png and .csv (mean |S_j| against the relative distance) and decay_ones.png and .csv (<R_m q, R_n k>
with q = k = ones against the key position n) into a folder, each beside the counter-examples where all pairs have the
frequency 0 or 1, and says in a few lines what the figures show.

    python tools/plot_decay.py --output runs/decay
"""

import argparse
import importlib.util
import io
import math
import os
import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from tasks.common.errors import InputError, exit_on_input_error  # noqa: E402

# by its path: the package around it imports paddle, and this needs numpy only
_spec = importlib.util.spec_from_file_location("decay", PROJECT / "paddle_rope" / "analysis" / "decay.py")
decay = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(decay)

FILES = ("decay_bound.png", "decay_bound.csv", "decay_ones.png", "decay_ones.csv")
LIMITS = {"head_dim": (2, 4096), "max_distance": (1, 1_000_000), "query_position": (0, 10**9)}
CURVES = ("rope", "theta_0", "theta_1")  # columns of the CSV files
ZOOM = 50  # distances at which the period of theta = 1, 6.28, can be seen
COLOURS = 256  # of a PNG
BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#c8560a", "#2a8a4a", "#666666"


def check_options(options):
    """Raise InputError for numbers that make no sense and for files that are there already. Makes nothing."""
    for name, (low, high) in LIMITS.items():
        value = getattr(options, name)
        if not low <= value <= high:
            raise InputError(f"--{name} {value}: must be from {low} to {high}")
    if options.head_dim % 2:
        raise InputError(f"--head_dim {options.head_dim}: must be even, features turn in pairs")
    if not 1 <= options.base < math.inf:
        raise InputError(f"--base {options.base:g}: must be a finite number, 1 or more")
    folder = options.output
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give another --output")
    existing = next(parent for parent in [folder, *folder.absolute().parents] if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"{folder}: cannot be made ({existing} is not a writable folder); give another --output")
    for name in FILES:
        path = folder / name
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give another --output")
        if path.exists() and not options.overwrite:
            raise InputError(f"{path}: exists already; give another --output, or --overwrite to replace it")


def bound_curves(options):
    """Mean |S_j| at the distances 0 .. max_distance: distances and {column: values}, all ``[max_distance + 1]``."""
    distances = np.arange(options.max_distance + 1)
    return distances, {name: decay.mean_partial_sums(theta, distances) for name, theta in _thetas(options)}


def ones_curves(options):
    """g at all keys up to max_distance from the query, on either side: key positions and {column: values}."""
    query, reach = options.query_position, options.max_distance
    keys = np.arange(max(0, query - reach), query + reach + 1)
    return keys, {name: decay.ones_scores(theta, keys - query) for name, theta in _thetas(options)}


def _thetas(options):
    pairs = options.head_dim // 2
    return zip(CURVES, (decay.frequencies(options.head_dim, options.base), np.zeros(pairs), np.ones(pairs)))


def draw_bound(options, distances, curves):
    """The figure of 8265: PNG, bytes."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    top = curves["theta_0"][0]
    axes.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$, and all $\theta_i = 1$: constant")
    axes.plot(distances, curves["rope"], color=BLUE, lw=_width(distances), label=_rope(options))
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
    figure = Figure(figsize=(8, 7), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    above.plot(keys, curves["rope"], color=BLUE, lw=_width(keys), label=_rope(options))
    left, right = keys[0], keys[-1]
    _mark_trend(above, query, keys, curves["rope"])
    _mark_quarter_periods(above, options, query, left)
    if query:
        above.axvline(query, color=GREY, lw=1, ls=":", label=f"query position {query}")
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
        axes.axhline(0, color=GREY, lw=0.6)
        axes.set_xlabel("key position n")
        axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
        axes.ticklabel_format(useOffset=False, style="plain", axis="x")
    below.legend(loc="upper right", ncols=2)
    return _finish(figure, above)


def _rope(options):
    return rf"RoPE, $\theta_i = {options.base:g}^{{-2i/d}}$"


def _width(points):
    return 1.2 if points.size < 2000 else 0.5


def _mark_trend(axes, query, keys, values):
    """A step for each octave of distances, to the right of the query."""
    averages = decay.octave_averages(values[keys >= query])
    for k, average in enumerate(averages):
        label = r"average over an octave, $2^k \leq n - m < 2^{k+1}$" if k == 0 else None
        axes.plot([query + 2**k, query + 2 ** (k + 1)], [average, average], color=ORANGE, lw=2, label=label)


def _mark_quarter_periods(axes, options, query, left=0):
    """A line where the slowest pair has turned by a quarter, if that is in the range."""
    quarter = decay.quarter_period(decay.frequencies(options.head_dim, options.base))
    if quarter <= options.max_distance:
        label = f"quarter period of the slowest pair: {quarter:.0f}"
        axes.axvline(query + quarter, color=GREEN, lw=1.2, ls="-.", label=label)
        if query - quarter >= left:
            axes.axvline(query - quarter, color=GREEN, lw=1.2, ls="-.")


def _finish(figure, axes):
    for each in figure.axes:
        each.grid(alpha=0.3)
    for line in axes.legend(loc="upper right").get_lines():
        line.set_linewidth(max(1.5, line.get_linewidth()))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    image = io.BytesIO()
    pixels.quantize(COLOURS).save(image, "png", optimize=True)  # a third of the size, and the same to the eye
    return image.getvalue()


def as_csv(columns):
    """{name: numbers} -> bytes; floats are written so that reading gives the same number again."""
    rows = zip(*(values.tolist() for values in columns.values()))
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode("ascii")


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


def write_whole(path, content):
    """Write bytes; the file appears under its name only when all of it is written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another --output") from None


@exit_on_input_error
def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head_dim", type=int, default=128, help="size of a head, even (default: 128)")
    parser.add_argument("--base", type=float, default=10000.0, help="of theta_i = base^(-2i/head_dim) (default: 10000)")
    parser.add_argument("--max_distance", type=int, default=256, help="largest relative distance (default: 256)")
    parser.add_argument("--query_position", type=int, default=0, help="m of the all-ones figure (default: 0)")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where to write; made if missing")
    parser.add_argument("--overwrite", action="store_true", help="replace the files of an earlier call")
    options = parser.parse_args(argv)
    check_options(options)

    distances, bound = bound_curves(options)
    keys, ones = ones_curves(options)
    contents = (
        draw_bound(options, distances, bound),
        as_csv({"distance": distances, **bound}),
        draw_ones(options, keys, ones),
        as_csv({"key_position": keys, "distance": keys - options.query_position, **ones}),
    )
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{options.output}: cannot be made ({error.strerror}); give another --output") from None
    for name, content in zip(FILES, contents):
        write_whole(options.output / name, content)
    print("\n".join(describe(options, bound["rope"], ones["rope"][keys >= options.query_position])))
    print(f"written to {options.output}: {', '.join(FILES)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
