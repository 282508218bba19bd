"""The report of plans that compare ways to know a position."""

from tasks.common.reports.figures import png
from tasks.common.reports.tables import as_csv
from tasks.experiments.positions import figures, tables
from tasks.language_model.report import by_variant, final_loss, setting

TITLES = {
    **{name: "NoPE" if name == "none" else name.upper() for name in tables.PUBLISHED},
    "learned": "learned positions",
    "alibi": "ALiBi",
    "theta": "QK, learned theta",
    "theta_slow": "QK, learned theta, 0.01 x rate",
}


def report(results):
    """The files of the report, see :func:`tasks.experiments.table.get_report`."""
    variants = by_variant(results)
    titles = {name: TITLES.get(name, name) for name in variants}
    length = results[0]["config"]["length"]
    lengths = sorted({entry["length"] for result in results for entry in result["lengths"]})
    drawn = {
        "losses.png": figures.draw_losses(variants, titles),
        "lengths.png": figures.draw_lengths(variants, titles, length),
    }
    if any("theta_end" in result for result in results):
        drawn["theta.png"] = figures.draw_theta(variants, titles)
    sections = [
        tables.placements(variants, titles),
        tables.others(variants, titles),
        tables.longer_texts(variants, titles, lengths),
        tables.learned_theta(variants, titles),
        *([f"![{name.removesuffix('.png')}]({name})"] for name in drawn),
    ]
    lines = ["# Positions in a character language model", "", *setting(results)]
    for section in filter(None, sections):
        lines += ["", *section]
    files = {"results.md": "\n".join(lines) + "\n", **data_files(results)}
    return {**files, **{name: png(figure) for name, figure in drawn.items()}}


def data_files(results):
    """The CSV files: one line for each run; for each run, scaling and length; for each trained frequency."""
    runs, lengths, thetas = [], [], []
    for result in results:
        key = {"variant": result["variant"], "seed": result["seed"]}
        runs.append({
            **key, "published": tables.PUBLISHED.get(result["variant"], ""), "held_out_loss": final_loss(result),
            "training_loss": result["training"][-1][1], "parameters": result["parameters"],
            "seconds": result["train_seconds"],
        })  # fmt: skip
        for entry in result["lengths"]:
            values = {"scaling": entry["scaling"], "length": entry["length"], "held_out_loss": entry["loss"]}
            lengths.append({**key, **values})
        for pair, (start, end) in enumerate(zip(result.get("theta_start", ()), result.get("theta_end", ()))):
            thetas.append({**key, "pair": pair, "theta_start": start, "theta_end": end})
    contents = {"losses.csv": runs, "lengths.csv": lengths, "theta.csv": thetas}
    return {name: as_csv(rows, list(rows[0])) for name, rows in contents.items() if rows}
