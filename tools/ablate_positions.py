#!/usr/bin/env python
"""Train small character language models that know positions in different ways, and compare their losses.

    python tools/ablate_positions.py CONFIG.yaml [--key value ...]
    python tools/ablate_positions.py --report OUTPUT_DIR

Rows: the placements of RoPE of kexue.fm 10862 (qk, qkvo, k, vo, qkv, none, o, q, v), sinusoidal, learned, alibi, and
RoPE with learned frequencies (theta, theta_slow). Each is also measured on texts of 2 and 4 times the length of
training, qk also with its frequencies scaled by NTK and YaRN.

CONFIG.yaml and --key take the keys of tasks/language_model/arguments.py; --rows and --seeds choose cells. The same
command in a second process takes cells that the first has not begun; after an interruption it goes on from the last
checkpoint to the same result. At its end, and by --report, what is finished is written into OUTPUT_DIR: results.md,
losses.csv, lengths.csv, theta.csv and figures. Compare runs in VisualDL: visualdl --logdir OUTPUT_DIR/cells
"""

import bootstrap  # noqa: F401

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError, exit_on_input_error
from tasks.experiments.positions import figures as figures
from tasks.experiments.positions import report as tables
from tasks.language_model.arguments import LanguageModelArguments
from tasks.language_model.evaluation import held_out_losses, with_scaling
from tasks.language_model.experiment_tool import run_experiment_tool
from tasks.language_model.grid import Experiment, Row
from tasks.language_model.reporting import by_row, final_loss, setting, write_csv, write_lines, write_png

PLACEMENTS = ("qk", "qkvo", "k", "vo", "qkv", "none", "o", "q", "v")
# A step of Adam is about its learning rate, and most frequencies are less than that of the weights.
SLOW = 0.01
ROWS = (
    *(Row(name, "NoPE" if name == "none" else name.upper(), {"position_embedding": name}) for name in PLACEMENTS),
    Row("sinusoidal", "sinusoidal", {"position_embedding": "sinusoidal"}, scale_embeddings=True),
    Row("learned", "learned positions", {"position_embedding": "learned"}),
    Row("alibi", "ALiBi", {"position_embedding": "alibi"}),
    Row("theta", "QK, learned theta", {"rotary_learned": True}),
    Row("theta_slow", f"QK, learned theta, {SLOW:g} x rate", {"rotary_learned": True}, theta_rate=SLOW),
)
TIMES = (1, 2, 4)  # lengths of texts, in lengths of training
FACTORS = (2, 4)  # of the scaled frequencies
SCALED_ROW = "qk"
STRETCHES = 4  # losses by position are means over so many parts of the length of training


@dataclass
class AblationArguments(LanguageModelArguments):
    def model_config(self, vocabulary, options):
        config = super().model_config(vocabulary, options)
        if config.head_dim < 4:
            raise InputError(f"configuration: heads of {config.head_dim} features: NTK scaling needs 4 or more")
        return config


def scaling_settings(length):
    """dict from the name of a scaling to ``rotary_scaling`` of the model."""
    settings = {tables.PLAIN: None}
    for factor in FACTORS:
        settings[f"NTK x{factor}"] = {"type": "ntk", "factor": factor}
        settings[f"YaRN x{factor}"] = {"type": "yarn", "factor": factor, "original_length": length}
    return settings


def measure(model, corpus, run, row):
    """Losses at all lengths that the row is defined for, and its frequencies if they are trained."""
    names = scaling_settings(run.length)
    if row.name != SCALED_ROW:
        names = {tables.PLAIN: None}
    times = (1,) if row.name == "learned" else TIMES
    entries = []
    for scaling, settings in names.items():
        scaled = with_scaling(model, settings)
        for time in times:
            losses = held_out_losses(scaled, corpus.held_out, time * run.length)
            parts = np.array_split(losses.mean(axis=0), min(STRETCHES, run.length) * time)
            entry = {"scaling": scaling, "length": time * run.length, "loss": float(losses.mean())}
            entries.append({**entry, "by_position": [float(part.mean()) for part in parts]})
    result = {"lengths": entries}
    if model.config.rotary_learned:
        untrained = type(model.roformer.rotary)(model.config.head_dim, model.config.rotary_base)
        result["theta_start"] = untrained.theta.tolist()
        result["theta_end"] = model.roformer.rotary.theta.numpy().astype("float64").tolist()
    return result


def report(folder, run, cells):
    """Write the tables and figures, and print the tables."""
    folder, rows = Path(folder), by_row(cells)
    titles = {row.name: row.title for row in ROWS}
    lengths = [time * run.length for time in TIMES]
    sections = [
        tables.placements(rows, titles),
        tables.others(rows, titles),
        tables.longer_texts(rows, titles, lengths),
        tables.learned_theta(rows, titles),
    ]
    lines = ["# Positions in a character language model", "", *setting(run, cells)]
    for section in filter(None, sections):
        lines += ["", *section]
    drawn = {
        "losses.png": figures.draw_losses(rows, titles),
        "lengths.png": figures.draw_lengths(rows, titles, run.length),
    }
    if any("theta_end" in cell for cell in cells):
        drawn["theta.png"] = figures.draw_theta(rows, titles)
    for name, figure in drawn.items():
        write_png(folder / name, figure)
        lines += ["", f"![{name.removesuffix('.png')}]({name})"]
    write_lines(folder / "results.md", lines)
    write_tables(folder, cells)
    print("\n".join(lines))


def write_tables(folder, cells):
    """The CSV files: one line for each cell; for each cell, scaling and length; for each trained frequency."""
    of_cells, of_lengths, of_thetas = [], [], []
    for cell in cells:
        key = cell["row"], cell["seed"]
        published, trained = tables.PUBLISHED.get(cell["row"], ""), cell["training"][-1][1]
        of_cells.append((*key, published, final_loss(cell), trained, cell["parameters"], cell["seconds"]))
        for entry in cell["lengths"]:
            of_lengths.append((*key, entry["scaling"], entry["length"], entry["loss"]))
        for pair, (start, end) in enumerate(zip(cell.get("theta_start", ()), cell.get("theta_end", ()))):
            of_thetas.append((*key, pair, start, end))
    columns = ("row", "seed", "published", "held_out_loss", "training_loss", "parameters", "seconds")
    write_csv(folder / "losses.csv", columns, of_cells)
    write_csv(folder / "lengths.csv", ("row", "seed", "scaling", "length", "held_out_loss"), of_lengths)
    write_csv(folder / "theta.csv", ("row", "seed", "pair", "theta_start", "theta_end"), of_thetas)


EXPERIMENT = Experiment(ROWS, AblationArguments, measure, report)


@exit_on_input_error
def main(argv=None):
    return run_experiment_tool(EXPERIMENT, __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
