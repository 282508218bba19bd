"""What the reports on grids share: words on the setting, means over seeds, CSV, Markdown, PNG."""

import statistics

from tasks.common.files import atomic_writer
from tasks.common.reports.figures import png
from tasks.common.reports.tables import as_csv, as_markdown


def by_row(cells):
    """The results of each row, dict from its name to a list in the order of the seeds; in the order of the rows."""
    grouped = {}
    for cell in cells:
        grouped.setdefault(cell["row"], []).append(cell)
    return grouped


def final_loss(cell):
    """Held-out loss after the last step, in texts of the length of training."""
    return cell["held_out"][-1][1]


def spread(values, digits=4):
    """``mean ± standard deviation`` of the sample (n - 1); the value alone where there is one."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def setting(run, cells):
    """Lines of Markdown: everything that the numbers depend on, and what they cost."""
    text = cells[0]["text"]
    seen = run.steps * run.batch_size * run.length
    seeds = sorted({cell["seed"] for cell in cells})
    parameters = sorted({cell["parameters"] for cell in cells})
    shown = f"{parameters[0]:,}" + (f" to {parameters[-1]:,}" if len(parameters) > 1 else "")
    return [
        f"- Text: {', '.join(run.files())}; {text['tokens']:,} characters (a run of white space is one, the end of a "
        f"document is one), {text['training_tokens']:,} to train on and {text['held_out_tokens']:,} held out in "
        f"{run.held_out_windows} stretches at even distances; vocabulary {text['vocabulary']:,}, "
        f"{text['unknown_share']:.2%} of the characters unknown (fewer than {run.vocab_min_count} occurrences).",
        f"- Model: RoFormer version {run.version}, causal, {run.num_hidden_layers} layers of {run.hidden_size}, "
        f"{run.num_attention_heads} heads of {run.hidden_size // run.num_attention_heads}, feed-forward "
        f"{run.intermediate_size} ({run.hidden_act}), no dropout; {shown} parameters.",
        f"- Training: {run.steps:,} steps of {run.batch_size} texts of {run.length} characters at random places "
        f"({seen:,} characters, {seen / text['training_tokens']:.2f} times the text); AdamW, learning rate "
        f"{run.learning_rate:g} after {run.warmup_steps} steps of warm-up, then linear to 0, weight decay "
        f"{run.weight_decay:g}, gradients cut to norm {run.max_grad_norm:g}.",
        f"- Seeds {', '.join(map(str, seeds))}, of weights and of the places of texts; each row sees the same texts.",
        f"- {'; '.join(sorted({cell['machine'] for cell in cells}))}. {len(cells)} cells, "
        f"{sum(cell['seconds'] for cell in cells) / 60:.0f} minutes of training in all. Losses in nats a character.",
    ]


def markdown_table(head, rows):
    """Lines of a Markdown table; ``rows`` of values under the names in ``head``."""
    return as_markdown([dict(zip(head, row)) for row in rows], head).splitlines()


def write_lines(path, lines):
    """Write text, a line each."""
    with atomic_writer(path) as file:
        file.write("\n".join(lines) + "\n")


def write_csv(path, columns, rows):
    """Write rows of values under the names of ``columns``."""
    with atomic_writer(path) as file:
        file.write(as_csv([dict(zip(columns, row)) for row in rows], columns))


def write_png(path, figure):
    """Write a matplotlib figure."""
    with atomic_writer(path, binary=True) as file:
        file.write(png(figure))
