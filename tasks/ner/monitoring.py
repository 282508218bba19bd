"""What VisualDL shows of an NER training run, in addition to :mod:`paddle_rope.tasks.common.training.monitor`."""

import functools
import importlib.util
import math
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib import font_manager
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle
from visualdl.component.base_component import pr_curve_raw

from paddle_rope.global_pointer.heads import MASKED_LOGIT
from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.common.reports.figures import new_figure, pixels
from paddle_rope.tasks.common.training.monitor import allowed_tag
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.calibration import temperatures_for
from paddle_rope.tasks.ner.lengths import window_settings
from paddle_rope.tasks.ner.metrics import match_in_example, precision_recall_curves
from paddle_rope.tasks.ner.prediction.finding import windows_of
from paddle_rope.tasks.ner.reports.reliability import draw_reliability, reliability

CURVE_STEPS = 100
SAMPLES = 8
DRAWN_CHARACTERS = 20  # longest text that is preferred for the picture


def show(writer, model, dataset, evaluation, step, group):
    """Write an evaluation of a ``NerModel`` on a dataset after ``step`` training steps
    to a VisualDL log: a precision-recall curve of each type, predictions for fixed texts with the gold entities, and
    two pictures: the scores of all spans of one text, and the reliability of probabilities with temperatures fitted to
    these data. Without candidates, there are no curves and no reliability. ``group`` is of the pictures: VisualDL opens
    the oldest one of a tag."""
    show_samples(writer, dataset.examples, evaluation.found, step)
    writer.add_image(f"{group}/scores", _picture_of_scores(model, dataset, step), step)
    if evaluation.candidates is None:
        return
    examples, config = dataset.examples, model.config
    show_curves(writer, examples, evaluation.candidates, config.types, step)
    temperatures = temperatures_for(examples, evaluation.candidates, config.types, config.allow_overlap)
    result = reliability(examples, evaluation.found, config.types, temperatures)
    if result["entities"]:
        writer.add_image(f"{group}/reliability", draw_reliability(result, f"step {step}"), step)


def show_curves(writer, examples, candidates, types, step):
    """Write the precision-recall curve of each type."""
    for kind, curve in precision_recall_curves(examples, candidates, types, CURVE_STEPS).items():
        curve = {name: values.tolist() for name, values in curve.items()}
        # LogWriter.add_pr_curve of VisualDL 2.5.3 needs np.float, which numpy 1.24 has removed
        now = round(time.time() * 1000)
        record = pr_curve_raw(tag=allowed_tag(f"dev/{kind}"), step=step, walltime=now, **curve)
        writer._get_file_writer().add_record(record)


def show_samples(writer, examples, found, step, match=match_in_example):
    """Write some texts with their gold and their found entities, which ``match`` pairs."""
    rows = [row for row, example in enumerate(examples) if example.entities]
    if len(rows) > SAMPLES:  # at equal distances
        rows = [rows[index * len(rows) // SAMPLES] for index in range(SAMPLES)]
    for number, row in enumerate(rows, 1):
        compared = _compared(examples[row], match(examples[row], found[row]))
        writer.add_text(f"dev/text_{number}", visible(compared, "\n"), step)


def _picture_of_scores(model, dataset, step):
    row = _example_to_draw(dataset.examples)
    example = dataset.examples[row]
    shown = example.text[:MAX_CHARACTERS]
    settings = window_settings(model.config)
    window = next(windows_of([dataset.texts[row]], settings.max_tokens, settings.overlap)).text
    scores = span_scores(model, window, len(shown))
    title = f"step {step}, {Path(example.where).name}: {shown}"
    return draw_scores(shown, scores, example.spans, model.config.types, title)


def span_scores(model, text, characters):
    """Logits of the spans in the first ``characters`` of a text, to be drawn: array
    ``[types, characters, characters]``, by first and last character, NaN where there is no span."""
    batch = pad_spans([text], model.config.pad_token_id, with_labels=False)
    logits = evaluated(model, batch)[0].astype("float32").numpy()  # [types, first, last or last - first]
    scores = np.full([len(logits), characters, characters], np.nan, dtype=np.float32)
    for first, column in np.argwhere((logits > MASKED_LOGIT / 2).any(axis=0)):
        last = column if model.config.max_span_length is None else first + column
        start, end = text.offsets[first][0], text.offsets[last][1]
        if end <= characters:
            scores[:, start, end - 1] = logits[:, first, column]
    return scores


def _example_to_draw(examples):
    """Index of the short text with the most types and entities; if none is short, the shortest with an entity."""

    def worth(row):
        entities, size = examples[row].entities, len(examples[row].text)
        counts = (len({entity.type for entity in entities}), len(entities)) if size <= DRAWN_CHARACTERS else (0, 0)
        return bool(entities), *counts, -size

    return max(range(len(examples)), key=worth)


def _compared(example, matches):
    """The text, then a line for each match of gold and predicted entities. VisualDL may join the lines, so each match
    begins with a dot."""
    lines = [example.text]
    for match in matches:
        sides = {"gold": match.gold, "predicted": match.predicted if match.kind != "correct" else None}
        told = [f"{side} {example.described(one)}" for side, one in sides.items() if one]
        score = f" {match.predicted.score:.2f}" if match.predicted else ""
        lines.append(f"• {match.kind}: {', '.join(told)}{score}")
    return "\n".join(lines)


# ---- the scores of all spans of a short text as a picture, one matrix per type


MAX_CHARACTERS = 40
MAX_PANELS = 4  # more would be too small to read in VisualDL
LOWEST, HIGHEST = -32.0, 8.0  # logits at which the colors end; most spans score far below 0


def draw_scores(text, scores, gold, types, title):
    """A picture, uint8 ``[height, width, 3]``, with a matrix for each type: rows are the first character of a span,
    columns the last. Red squares score above 0, blue ones below; entities of ``gold``, a set of (start, end, type), are
    framed. At most ``MAX_PANELS`` types are drawn, gold types first, then types with the highest scores. ``scores`` are
    from :func:`span_scores`, ``text`` has at most ``MAX_CHARACTERS`` characters."""
    matrices = dict(zip(types, scores))
    shown = _chosen(types, matrices, gold)
    style = {"fontfamily": chinese_font(), "parse_math": False}  # a $ in a user's text begins no formula
    labels = [symbol if symbol.isprintable() else str(index) for index, symbol in enumerate(text)]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    side = max(0.2 * len(text), 2.0) + 0.4  # inches of a panel with its margins
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    figure, panels = new_figure(columns * side + 1.3, rows * side + 1.2, rows, columns, **shared)
    for axes in panels.flat[len(shown) :]:
        axes.remove()
    for axes, kind in zip(panels.flat, shown):
        image = axes.imshow(matrices[kind], cmap="RdBu_r", norm=TwoSlopeNorm(0, LOWEST, HIGHEST))
        axes.grid(False)
        axes.set_facecolor("#e8e8e8")
        axes.set_title(_printable(kind[:MAX_CHARACTERS]), **style)
        axes.set_xticks(range(len(text)), labels, **style)
        axes.set_yticks(range(len(text)), labels, **style)
        axes.tick_params(length=0)
        for start, end, of_kind in gold:
            if of_kind == kind and end <= len(text):
                axes.add_patch(Rectangle((end - 1.5, start - 0.5), 1, 1, fill=False, linewidth=1.4))
    figure.colorbar(image, ax=figure.axes, label="logit; above 0 is an entity")
    axes_named = "down: first character, to the right: last character; framed: gold"
    figure.suptitle(f"{_printable(title)}\n{axes_named}", fontsize=11, **style)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # drawn as an empty box
        return pixels(figure)


def _chosen(types, matrices, gold):
    in_gold = {kind for _, _, kind in gold}
    ranked = sorted(types, key=lambda kind: (kind not in in_gold, -np.nanmax(matrices[kind], initial=-np.inf)))
    return [kind for kind in types if kind in ranked[:MAX_PANELS]]


@functools.cache
def chinese_font():
    """Name of a font with Chinese characters, from the package zhplot."""
    folder = Path(importlib.util.find_spec("zhplot").origin).parent  # importing it would change matplotlib's settings
    font_manager.fontManager.addfont(folder / "fonts" / "NotoSansSC-Regular.ttf")
    return "Noto Sans SC"


def _printable(text):
    return "".join(symbol if symbol.isprintable() else "\ufffd" for symbol in text)
