"""What :func:`~tasks.experiments.benchmarks.entities.measured.measure_entities` gives, as Markdown and as a picture."""

from __future__ import annotations

from tasks.common.reports.figures import new_figure, png
from tasks.common.reports.tables import as_markdown
from tasks.experiments.benchmarks.entities.measured import FEWEST, POINT

_COLORS = ["#1f5fa8", "#c8560a", "#2a8a4a", "#8a3fa0", "#b5891c", "#3aa0a0", "#a03a55", "#5a6b2f"]
_PLACES = {"within": "within the texts", "at_ends": "at the ends of texts"}
_STYLES = {"texts": "-", "lists": ":"}


def as_report(measured: dict) -> str:
    """Markdown: tables of F1 against length and position, what is more than a point under the texts alone, and how it
    was measured."""
    by_case: dict = {}
    for row in measured["rows"]:
        by_case.setdefault((row["model"], row["reading"], row["documents"]), []).append(row)
    lengths = sorted({row["length"] for row in measured["rows"] if row["length"] is not None})
    table = [
        {"model": model, "reads": reading, "documents": documents, **{_named(row): _cell(row) for row in rows}}
        for (model, reading, documents), rows in by_case.items()
    ]
    parts = ["F1 (points against the texts alone; of lists, against the shortest), by the length in characters:\n"]
    parts.append(as_markdown(table, ["model", "reads", "documents", "alone", *(f"{length:,}" for length in lengths)]))
    tenths = [
        {
            "model": row["model"], "reads": row["reading"], "length": f"{row['length']:,}",
            **{f"{number}/10": _points(_gap(tenth)) for number, tenth in enumerate(row["tenths"], 1)},
        }
        for row in measured["rows"] if "tenths" in row
    ]  # fmt: skip
    if tenths:
        parts.append("Points of F1 against the same texts alone, by the tenth of the document:\n")
        parts.append(as_markdown(tenths, list(tenths[0])))
        places = [
            {
                "model": row["model"], "reads": row["reading"], "length": f"{row['length']:,}",
                **{name: _place(row["places"][key]) for key, name in _PLACES.items()},
            }
            for row in measured["rows"] if "places" in row
        ]  # fmt: skip
        parts.append("Points of F1 against the same texts alone, and how many entities (the end of a text alone tells "
                     "where an entity begins or ends; joined texts do not):\n")  # fmt: skip
        parts.append(as_markdown(places, list(places[0])))
    under = _under(measured["rows"])
    parts += [f"More than {POINT * 100:.0f} point under:\n" if under else "Nothing is more than one point under.\n"]
    if under:
        parts.append("".join(f"- {line}\n" for line in under))
    if measured["notes"]:
        parts.append("".join(f"- note: {note}\n" for note in measured["notes"]))
    kind = f" Lists hold entities of type {measured['list_type']}." if measured["list_type"] else ""
    parts.append(
        f"{measured['file']}: the first {measured['texts']:,} texts, {measured['characters']:,} characters, the "
        f"longest {measured['longest']:,}, {measured['entities']:,} entities; seed {measured['seed']}.{kind} "
        f"{measured['machine']}\n"
    )
    return "\n".join(parts)


def _named(row):
    return "alone" if row["length"] is None else f"{row['length']:,}"


def _cell(row):
    is_reference = row["difference"] is None or row["length"] is None
    return f"{row['f1']:.4f}" + ("" if is_reference else f" ({_points(row['difference'])})")


def _points(difference):
    return None if difference is None else f"{100 * difference:+.1f}"


def _gap(scores):
    """F1 of a tenth or place over that of the same texts alone; None where there are few entities."""
    return scores["f1"] - scores["alone"]["f1"] if scores["support"] >= FEWEST else None


def _place(scores):
    return f"{_points(_gap(scores)) or '-'} ({scores['support']:,})"


def _under(rows):
    lines = []
    for row in rows:
        if row["length"] is None:
            continue
        what = f"{row['model']}, {row['reading']}, {row['documents']} of {row['length']:,} characters"
        if row["difference"] is not None and row["difference"] < -POINT:
            lines.append(f"{what}: {_points(row['difference'])} points")
        gaps = [(number, _gap(tenth)) for number, tenth in enumerate(row.get("tenths", ()), 1)]
        far = [f"{number}/10 {_points(gap)}" for number, gap in gaps if gap is not None and gap < -POINT]
        if far:
            lines.append(f"{what}, by tenth: {', '.join(far)} points")
    return lines


def draw(measured: dict) -> bytes:
    """PNG: F1 against length, and against the tenth of the longest documents."""
    figure, (left, right) = new_figure(11, 4.5, columns=2)
    colors: dict = {}
    longest: dict = {}
    lines: dict = {}
    for row in measured["rows"]:
        case = row["model"], row["reading"]
        colors.setdefault(case, _COLORS[len(colors) % len(_COLORS)])
        if row["length"] is not None:
            lines.setdefault((*case, row["documents"]), []).append((row["length"], row["f1"]))
        elif row["documents"] == "texts":
            left.axhline(row["f1"], color=colors[case], lw=0.8, ls="--", alpha=0.7)
        if "tenths" in row:
            longest[case] = row
    for (model, reading, documents), points in lines.items():
        name = f"{model}, {reading}" + (", lists" if documents == "lists" else "")
        color = colors[model, reading]
        left.plot(*zip(*points), _STYLES[documents], color=color, marker="o", ms=4, label=name)
    ticks = sorted({row["length"] for row in measured["rows"] if row["length"] is not None})
    if ticks:
        left.set_xscale("log", base=2)
        left.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    left.set_xlabel("characters of a document (dashed: the texts alone)")
    left.set_ylabel("F1")
    for case, row in longest.items():
        places = [(number - 0.5) / len(row["tenths"]) for number in range(1, len(row["tenths"]) + 1)]
        right.plot(places, [tenth["f1"] for tenth in row["tenths"]], color=colors[case], marker="o", ms=4)
        right.plot(places, [tenth["alone"]["f1"] for tenth in row["tenths"]], "--", color=colors[case], lw=0.8)
    lengths = sorted({f"{row['length']:,}" for row in longest.values()})
    right.set_xlabel(f"place in documents of {' or '.join(lengths)} characters (dashed: the same texts alone)")
    right.set_xlim(0, 1)
    for axes in (left, right):
        axes.set_ylim(bottom=0)
    if lines:
        figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return png(figure)
