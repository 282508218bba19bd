"""What VisualDL shows of triples."""

from typing import Any

from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.ner import monitoring
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.reports.printed import SIDES
from paddle_rope.tasks.relations.decoding import Related
from paddle_rope.tasks.relations.metrics import described, gold_of, match_triples


def show(
    writer: Any,
    examples: list[Example],
    found: list[Related],
    step: int,
    candidates: list | None = None,
    relations: list[str] | None = None,
) -> None:
    """Write the gold and the found triples of some texts to a VisualDL log and, if there are ``candidates``, a
    precision-recall curve of each of the ``relations``."""
    rows = monitoring.sample([row for row, example in enumerate(examples) if example.relations])
    for number, row in enumerate(rows, 1):
        writer.add_text(f"dev/relations_{number}", visible(_compared(examples[row], found[row]), "\n"), step)
    if candidates is not None:
        monitoring.show_curves(writer, gold_of(examples), candidates, relations, step)


def _compared(example, found):
    lines = [example.text]
    for kind, *sides in match_triples(example, found):
        told = [f"{side} {one.type} {described(one, example.text)}" for side, one in zip(SIDES, sides) if one]
        lines.append(f"• {kind}: {', '.join(told[: 1 if kind == 'correct' else 2])}")
    return "\n".join(lines)
