"""What training and evaluation print of triples."""

from paddle_rope.tasks.common.reports.tables import print_score_rows
from paddle_rope.tasks.ner.reports import printed


def print_scores(title: str, scores: dict) -> None:
    """Print the result of :func:`paddle_rope.tasks.relations.metrics.relation_scores` as two tables: a row for each
    relation and one for all, then what is counted in other ways."""
    printed.print_scores(title, scores)
    rows = ("triples by text, as DuIE counts", scores["by_text"]), ("entities", scores["entities"])
    print_score_rows(f"{title}, counted otherwise", "what", rows)
