"""Reports of single experiments, beside the tables that every plan has."""

from collections.abc import Callable

from tasks.common.errors import InputError

REPORTS = ("positions", "performer")


def get_report(name: str) -> Callable[[list[dict]], dict[str, str | bytes]]:
    """The report of a name: a function of what the finished runs left (the labels, ``config`` and ``metrics.json`` of
    each in one dict) that gives the content of its files; ``results.md`` among them is printed.

    Raises:
        InputError: there is none.
    """
    if name == "positions":
        from tasks.experiments.positions.report import report
    elif name == "performer":
        from tasks.experiments.performer.report import report
    else:
        raise InputError(f"report {name!r}: there is none; take one of {', '.join(REPORTS)}")
    return report
