"""The scores of all spans of a short text as a picture, one matrix a type."""

import contextlib
import functools
import math
import sys
import warnings

import numpy as np
from matplotlib import font_manager
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tasks.common.reports.figures import pixels

MAX_CHARACTERS = 40
MAX_PANELS = 4  # more would be too small to read in VisualDL
LOWEST, HIGHEST = -32.0, 8.0  # logits at which the colors end; most spans score far below 0
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei",
    "PingFang SC", "Heiti SC", "Noto Sans CJK JP",
)  # fmt: skip


def draw_scores(text, scores, gold, types, title):
    """Draw a matrix for each type, uint8 ``[height, width, 3]``: first character of a span downwards, last character to
    the right.

    Red squares score above 0, blue ones below; gold entities have a frame. Of many types, the types of gold entities
    and then those with the highest scores are drawn, ``MAX_PANELS`` in all.

    Args:
        text: string, ``MAX_CHARACTERS`` at most.
        scores: ``[types, characters, characters]``, first and last character of a span; NaN where there is none.
        gold: set of (start, end, type).
        types: names of the types, in order.
        title: line above the picture.
    """
    matrices = dict(zip(types, scores))
    shown = _chosen(types, matrices, gold)
    font = chinese_font()
    style = {"fontfamily": font or "sans-serif", "parse_math": False}  # a $ of a user begins no formula
    labels = [symbol if font and symbol.isprintable() else str(index) for index, symbol in enumerate(text)]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    side = max(0.2 * len(text), 2.0) + 0.4  # inches of a panel with what is around it
    width, height = columns * side + 1.3, rows * side + 1.2
    figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
    edges = {"left": 0.45 / width, "right": 1 - 1.05 / width, "bottom": 0.4 / height, "top": 1 - 0.95 / height}
    panels = figure.subplots(
        *(rows, columns), sharex=True, sharey=True, squeeze=False, gridspec_kw={**edges, "hspace": 0.16, "wspace": 0.08}
    )
    for axes in panels.flat[len(shown) :]:
        axes.remove()
    for axes, kind in zip(panels.flat, shown):
        colors = TwoSlopeNorm(0, LOWEST, HIGHEST)
        image = axes.imshow(matrices[kind], cmap="RdBu_r", norm=colors, interpolation="nearest")
        axes.set_facecolor("#e8e8e8")
        axes.set_title(_printable(kind[:MAX_CHARACTERS]), pad=4, fontsize=12, **style)
        axes.set_xticks(range(len(text)), labels, fontsize=11, **style)
        axes.set_yticks(range(len(text)), labels, fontsize=11, **style)
        axes.tick_params(length=0, pad=2)
        for start, end, of_kind in gold:
            if of_kind == kind and end <= len(text):
                corner = (end - 1.5, start - 0.5)
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=1.4))
    bar = figure.add_axes([1 - 0.75 / width, 0.45 / height, 0.13 / width, (height - 1.35) / height])
    figure.colorbar(image, cax=bar).set_label("logit; above 0 is an entity", fontsize=10)
    axes_named = "down: first character, to the right: last character; framed: gold"
    figure.text(0.45 / width, 1 - 0.28 / height, _printable(title), fontsize=13, **style)
    figure.text(0.45 / width, 1 - 0.52 / height, axes_named, fontsize=10, **style)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # drawn as an empty box
        return pixels(figure)


def _chosen(types, matrices, gold):
    if len(types) <= MAX_PANELS:
        return list(types)
    in_gold = {kind for _, _, kind in gold}
    ranked = sorted(types, key=lambda kind: (kind not in in_gold, -np.nanmax(matrices[kind], initial=-np.inf)))
    return [kind for kind in types if kind in ranked[:MAX_PANELS]]


@functools.cache
def chinese_font():
    """Name of a font with Chinese characters, or None: then characters are numbered, which is said once."""
    fonts = font_manager.fontManager
    for paths in (lambda: [], font_manager.findSystemFonts):  # installed since matplotlib first listed them
        for path in sorted({*paths()} - {font.fname for font in fonts.ttflist}):
            with contextlib.suppress(Exception):  # FreeType does not read it
                fonts.addfont(path)
        found = [name for name in CHINESE_FONTS if name in {font.name for font in fonts.ttflist}]
        if found:
            return found[0]
    note = "note: no font has Chinese characters; pictures number them instead; apt-get install fonts-noto-cjk"
    print(note, file=sys.stderr)
    return None


def _printable(text):
    return "".join(symbol if symbol.isprintable() else "\ufffd" for symbol in text)
