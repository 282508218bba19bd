"""Draws figures of the documents from measured numbers: python tools/dev/draw_figures.py [FOLDER]

docs/figures/length.csv is what ``paddle-rope benchmark length configs/experiments/ner_length.yaml`` writes. The other
numbers stand in tables of docs/results/, with their commands.
"""

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
COLORS = ["#4c566a", "#c8553d", "#1f6fb4", "#2e8b57", "#b8860b", "#7a4fa3", "#8b8b8b"]
KINDS = {  # of length.csv -> what readers know it as
    "softmax": "softmax attention, all spans",
    "linear-band": "linear attention, spans of up to 32",
    "all-band": "the same + decay, convolutions, gate",
    "window-band": "window of 32, spans of up to 32",
}
# docs/results/few-labels.md: texts -> F1 and its standard deviation over three seeds
FEW_LABELS = {
    "CLUENER": {
        "CRF": {100: (0.2571, 0.0084), 300: (0.4234, 0.0149), 1000: (0.5788, 0.0039), 3000: (0.6630, 0.0050),
                10000: (0.7285, 0.0036)},
        "own_data.yaml": {100: (0.4429, 0.0206), 300: (0.5580, 0.0106), 1000: (0.6732, 0.0004), 3000: (0.7306, 0.0016),
                          10000: (0.7669, 0.0023), 10748: (0.7793, 0.0040)},
        "without the encoder": {100: (0.2851, 0.0170), 300: (0.4241, 0.0352), 1000: (0.5772, 0.0079),
                          3000: (0.6769, 0.0009), 10000: (0.7485, 0.0008)},
        "without it, with --unlabeled_files": {100: (0.2982, 0.0068), 300: (0.4581, 0.0217), 1000: (0.5986, 0.0044)},
        "own_data.yaml and a teacher": {300: (0.5834, 0)},  # one draw
    },
    "People's Daily": {
        "CRF": {100: (0.5486, 0.0172), 300: (0.6345, 0.0288), 1000: (0.7209, 0.0103), 3000: (0.8065, 0.0038),
                10000: (0.8764, 0.0020)},
        "own_data.yaml": {100: (0.6396, 0.0172), 300: (0.7369, 0.0076), 1000: (0.8088, 0.0035), 3000: (0.8472, 0.0032),
                          10000: (0.9047, 0.0042), 20864: (0.9259, 0)},  # one seed
        "without the encoder": {100: (0.5168, 0.0288), 300: (0.6159, 0.0120), 1000: (0.7264, 0.0050),
                          3000: (0.8102, 0.0011), 10000: (0.8861, 0.0019)},
        "without it, with --unlabeled_files": {100: (0.5268, 0.0378), 300: (0.6262, 0.0146)},
    },
}  # fmt: skip
# docs/results/positions.md: length -> held-out loss and its standard deviation over three seeds; trained at 128
LONGER_TEXTS = {
    "RoPE": {128: (4.1861, 0.0098), 256: (4.3056, 0.0027), 512: (4.4699, 0.0059)},
    "RoPE, NTK x 4": {128: (4.1971, 0.0099), 256: (4.1874, 0.0101), 512: (4.3422, 0.0043)},
    "RoPE, YaRN x 4": {128: (4.3371, 0.0139), 256: (4.3297, 0.0148), 512: (4.3292, 0.0142)},
    "RoPE on q, k, v and output": {128: (4.1708, 0.0136), 256: (4.2758, 0.0249), 512: (4.4560, 0.0331)},
    "ALiBi": {128: (4.1959, 0.0017), 256: (4.1810, 0.0025), 512: (4.1742, 0.0026)},
    "linear, decay, convolutions, gate": {128: (4.0999, 0.0036), 256: (4.0890, 0.0051), 512: (4.0892, 0.0070)},
    "no positions": {128: (4.4218, 0.0019), 256: (4.4359, 0.0012), 512: (4.4646, 0.0022)},
}
# docs/guides/annotation.md: labeled texts -> F1 and its standard deviation; characters of a chosen text
ANNOTATION = {
    "total entropy": ({500: (0.3848, 0.0495), 1000: (0.5482, 0.0180), 2000: (0.6581, 0.0053)}, 41.3),
    "at random": ({500: (0.3848, 0.0495), 1000: (0.5309, 0.0040), 2000: (0.6425, 0.0131)}, 37.4),
}
# docs/results/speed.md: processor time of training steps, divided by that of ours in float32, for each of SIZES
SPEED = {
    "ours, bfloat16": (0.61, 0.64, 0.56, 0.88),
    "ours": (1, 1, 1, 1),
    "Hugging Face, bfloat16": (0.84, 0.79, 0.76, 1.27),
    "Hugging Face": (1.30, 1.29, 1.34, 2.49),
    "PaddleNLP, our settings": (1.83, 1.73, None, 1.98),
    "PaddleNLP": (4.16, 3.90, 2.98, 4.37),
}
SIZES = ("4 x 256, 32 x 40", "6 x 384, 8 x 256", "12 x 768, 8 x 128", "4 x 256, 1 x 2,048")

# docs/guides/evaluation.md: groups of found entities, the mean of their probabilities and the share that is correct
RELIABILITY = {
    "T = 1": [
        (0.593, 0.486),
        (0.736, 0.521),
        (0.833, 0.697),
        (0.900, 0.817),
        (0.939, 0.782),
        (0.961, 0.901),
        (0.974, 0.923),
        (0.983, 0.951),
        (0.989, 0.979),
        (0.995, 0.979),
    ],
    "T of each type, fitted": [
        (0.551, 0.486),
        (0.639, 0.535),
        (0.708, 0.704),
        (0.774, 0.796),
        (0.820, 0.810),
        (0.855, 0.887),
        (0.882, 0.887),
        (0.904, 0.958),
        (0.922, 0.993),
        (0.943, 0.979),
    ],
}


def plain(value, _=None):
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def logarithmic(axes, lengths, values, unit):
    """Both axes by powers, with few ticks that are written out."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(lengths))
    axes.yaxis.set_major_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{plain(value)} {unit}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())


def styled(axes):
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def draw_length():
    """length.png: time and memory of NER against the length of the text; long_texts.png: half of it."""
    with open(FIGURES / "length.csv", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["seconds"]]
    panels = [
        ("train", "seconds", "one training step on one text", [1, 10, 100], "s"),
        ("predict", "seconds", "prediction of one text", [0.1, 1, 10, 100], "s"),
        ("train", "peak_mb", "peak memory, training", [1, 2, 5, 10], "GB"),
        ("predict", "peak_mb", "peak memory, prediction", [1, 2, 5, 10], "GB"),
    ]
    for name, chosen, shape, size in (
        ("length.png", panels, (2, 2), (10, 7.4)),
        ("long_texts.png", [panels[0], panels[3]], (1, 2), (10, 3.9)),
    ):
        figure, grid = plt.subplots(*shape, figsize=size, squeeze=False)
        for axes, (job, column, title, ticks, unit) in zip(grid.flat, chosen):
            for color, (kind, label) in zip(COLORS[1:], KINDS.items()):
                points = [row for row in rows if row["job"] == job and row["variant"] == kind]
                lengths = [int(row["length"]) for row in points]
                divisor = 1024 if unit == "GB" else 1
                values = [float(row[column]) / divisor for row in points]
                axes.plot(lengths, values, "o-", color=color, label=label, markersize=4, linewidth=1.8)
                if lengths[-1] < 100_000:
                    axes.annotate("too long from here", (lengths[-1], values[-1]), (8, -2), textcoords="offset points",
                                  fontsize=8, color=color)  # fmt: skip
            logarithmic(axes, [1024, 4096, 16384, 100_000], ticks, unit)
            axes.set_title(title, fontsize=11)
            styled(axes)
        for axes in grid[-1]:
            axes.set_xlabel("characters")
        figure.legend(
            *grid.flat[0].get_legend_handles_labels(),
            loc="lower center",
            ncols=4,
            frameon=False,
            fontsize=8.5,
            columnspacing=1.2,
        )
        figure.tight_layout(rect=(0, 0.08 if shape[0] == 1 else 0.04, 1, 1))
        yield name, figure


def draw_few_labels():
    """few_labels.png: F1 against the number of labeled texts, with a CRF for comparison."""
    figure, grid = plt.subplots(1, 2, figsize=(10, 4))
    for axes, (data, models) in zip(grid, FEW_LABELS.items()):
        for color, (label, scores) in zip(COLORS, models.items()):
            means, spreads = zip(*scores.values())
            dashed = "o--" if "--unlabeled_files" in label else "o-"
            axes.errorbar(list(scores), means, spreads, fmt=dashed, color=color, label=label, markersize=4, capsize=3)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([100, 300, 1000, 3000, 10000]))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(data, fontsize=11)
        axes.set_xlabel("labeled texts")
        styled(axes)
    grid[0].set_ylabel("F1")
    grid[0].legend(frameon=False, loc="lower right")
    figure.tight_layout()
    yield "few_labels.png", figure


def draw_longer_texts():
    """positions_lengths.png: losses in texts that are longer than in training."""
    figure, axes = plt.subplots(figsize=(7.5, 4.2))
    for color, (label, losses) in zip(COLORS, LONGER_TEXTS.items()):
        means, spreads = zip(*losses.values())
        axes.errorbar(list(losses), means, spreads, fmt="o-", color=color, label=label, markersize=4, capsize=3)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([128, 256, 512]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: {128: "128 (training)"}.get(value, plain(value))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("characters of the text")
    axes.set_ylabel("nats a character")
    axes.legend(frameon=False, bbox_to_anchor=(1, 1), loc="upper left")
    styled(axes)
    figure.tight_layout()
    yield "positions_lengths.png", figure


def draw_annotation():
    """annotation.png: F1 against labeled texts and characters, for texts that are chosen or drawn."""
    figure, grid = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for color, (label, (scores, characters)) in zip((COLORS[2], COLORS[0]), ANNOTATION.items()):
        means, spreads = map(list, zip(*scores.values()))
        drawn = 500 * ANNOTATION["at random"][1]  # the first texts are the same
        for axes, places in zip(grid, (list(scores), [drawn + characters * (texts - 500) for texts in scores])):
            axes.errorbar(places, means, spreads, fmt="o-", color=color, label=label, markersize=4, capsize=3)
    for axes, what, ticks in zip(grid, ("texts", "characters"), ([500, 1000, 2000], [20_000, 40_000, 80_000])):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel(f"labeled {what}")
        styled(axes)
    grid[0].set_ylabel("F1 on CLUENER")
    grid[0].legend(title="next texts", frameon=False, loc="upper left")
    figure.tight_layout()
    yield "annotation.png", figure


def draw_speed():
    """speed.png: bars of the time of a training step."""
    figure, axes = plt.subplots(figsize=(10, 4.2))
    width = 0.8 / len(SPEED)
    colors = (COLORS[2], COLORS[2], COLORS[4], COLORS[4], COLORS[1], COLORS[1])
    for number, ((label, ratios), color) in enumerate(zip(SPEED.items(), colors)):
        places = [group + (number - (len(SPEED) - 1) / 2) * width for group in range(len(SIZES))]
        pale = 0.45 if "," in label else 1
        bars = axes.bar(places, [ratio or 0 for ratio in ratios], 0.92 * width, label=label, color=color, alpha=pale)
        axes.bar_label(bars, [f"{ratio:.2g}" if ratio else "" for ratio in ratios], fontsize=8, padding=1)
    axes.set_xticks(range(len(SIZES)), SIZES)
    axes.set_xlabel("layers x hidden, texts x length")
    axes.set_ylabel("time of a training step, ours in float32 = 1")
    axes.legend(frameon=False, fontsize=8.5, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    styled(axes)
    axes.grid(axis="x", visible=False)
    figure.tight_layout()
    yield "speed.png", figure


def draw_reliability():
    """reliability.png: how often entities are correct, against their probability."""
    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    axes.plot([0.4, 1], [0.4, 1], color=COLORS[6], linestyle="--", linewidth=1, label="as it should be")
    for color, marker, (label, groups) in zip((COLORS[1], COLORS[2]), "os", RELIABILITY.items()):
        axes.plot(*zip(*groups), marker=marker, color=color, label=label, markersize=5)
    axes.set_xlabel("mean probability of a tenth of the found entities")
    axes.set_ylabel("share that is correct")
    axes.legend(frameon=False, loc="upper left")
    styled(axes)
    figure.tight_layout()
    yield "reliability.png", figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0] + ".")
    parser.add_argument("folder", nargs="?", type=Path, default=FIGURES, help="where to (default: %(default)s)")
    folder = parser.parse_args().folder
    for draw in (draw_length, draw_few_labels, draw_longer_texts, draw_annotation, draw_speed, draw_reliability):
        for name, figure in draw():
            figure.savefig(folder / name, dpi=110)
            plt.close(figure)


if __name__ == "__main__":
    main()
