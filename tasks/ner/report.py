"""What training and evaluation print."""

from rich.console import Console
from rich.table import Table


def print_scores(title, scores):
    """Print the result of :func:`tasks.ner.metrics.entity_scores` as a table, one line a type and one for all."""
    table = Table(title=title, title_justify="left")
    table.add_column("type")
    for name in ("precision", "recall", "F1", "gold", "predicted"):
        table.add_column(name, justify="right")
    for kind, row in scores["per_type"].items():
        table.add_row(kind, *_cells(row))
    table.add_section()
    table.add_row("all (micro)", *_cells(scores))
    _console().print(table)


def _cells(row):
    return (
        *(f"{row[name]:.4f}" for name in ("precision", "recall", "f1")),
        str(row["support"]),
        str(row["predicted"]),
    )


def print_data_report(datasets):
    """Print counts of each data set, and the gold entities that no token boundary fits.

    Args:
        datasets: dict from a name to a :class:`tasks.ner.batching.NerDataset`.
    """
    console = _console()
    for name, dataset in datasets.items():
        lengths = [len(example.text) for example in dataset.examples]
        entities = sum(len(example.entities) for example in dataset.examples)
        console.print(
            f"{name}: {len(lengths)} texts, {sum(lengths)} characters (longest {max(lengths)}), {entities} entities",
            highlight=False,
            markup=False,
        )
        if dataset.unaligned:
            examples = "; ".join(
                f"{example.where} {entity.type} {example.text[entity.start : entity.end]!r}"
                for example, entity in dataset.unaligned[:3]
            )
            console.print(
                f"  {len(dataset.unaligned)} of them start or end inside a token and cannot be found by the model "
                f"(they count as missed): {examples}",
                highlight=False,
                markup=False,
            )


def _console():
    return Console(soft_wrap=True)
