"""What VisualDL shows of an NER training run beside :mod:`tasks.common.monitor`."""

from __future__ import annotations

import math
import time

from visualdl.component.base_component import pr_curve_raw

from tasks.common.monitor import VisualDLMonitor
from tasks.ner.error_analysis import match_entities
from tasks.ner.metrics import precision_recall_curve
from tasks.ner.prediction import predict_entities
from tasks.ner.score_image import draw_scores

CURVE_STEPS = 100
# Spans that score less do not touch the curves.
LOWEST_LOGIT = math.log(1 / (CURVE_STEPS - 1))
# While more of the spans score above LOWEST_LOGIT, they are not collected: the model does not tell spans apart yet.
MOST_CANDIDATES = 0.02
SAMPLES = 8
DRAWN_CHARACTERS = 24  # longest text that is preferred for the picture


class NerMonitor(VisualDLMonitor):
    """Adds to each evaluation: a precision-recall curve of each type, predictions of fixed dev texts beside the gold
    entities, and the scores of all spans of one dev text as a picture.

    Args: as of :class:`VisualDLMonitor`.
    """

    def watch(self, model, dataset, step):
        """Show the fixed texts; called at an evaluation, before it.

        Args:
            model: :class:`tasks.ner.model.NerModel`.
            dataset: :class:`tasks.ner.batching.NerDataset` that is evaluated.
            step: training steps so far.

        Returns:
            A function that draws the curves, to be called with (start, end, type, score) of all spans of the data set
            that score above ``LOWEST_LOGIT``, a list for each text; None if that is not wanted.
        """
        if self.writer is None:
            return None
        self._show_samples(model, dataset, step)
        if self._show_scores(model, dataset, step) > MOST_CANDIDATES:
            return None
        return lambda candidates: self._show_curves(model.config.types, dataset, step, candidates)

    def _show_curves(self, types, dataset, step, candidates):
        gold = [_gold(example) for example in dataset.examples]
        for kind in types:
            curve = precision_recall_curve(gold, candidates, kind, CURVE_STEPS)
            curve = {name: values.tolist() for name, values in curve.items()}
            # LogWriter.add_pr_curve of VisualDL 2.5.3 needs np.float, which numpy 1.24 has removed
            record = pr_curve_raw(tag=f"dev/{_tag(kind)}", step=step, walltime=round(time.time() * 1000), **curve)
            self.writer._get_file_writer().add_record(record)

    def _show_samples(self, model, dataset, step):
        rows = _spread([row for row, example in enumerate(dataset.examples) if example.entities], SAMPLES)
        found = _predict(model, [dataset.texts[row] for row in rows])
        for number, (row, entities) in enumerate(zip(rows, found), 1):
            self.writer.add_text(f"dev/text_{number}", _compared(dataset.examples[row], entities), step)

    def _show_scores(self, model, dataset, step):
        """Draw the picture; returns the share of spans that score above ``LOWEST_LOGIT``."""
        row = _example_to_draw(dataset.examples)
        example = dataset.examples[row]
        (spans,) = _predict(model, [dataset.texts[row]], thresholds=-1e3)  # all but the masked ones
        title = f"step {step}, {example.where}: {example.text}"
        self.writer.add_image(
            "dev/scores", draw_scores(example.text, spans, _gold(example), model.config.types, title), step
        )
        return sum(span[3] > LOWEST_LOGIT for span in spans) / max(len(spans), 1)


def _predict(model, texts, thresholds=None):
    return predict_entities(
        model, texts, model.config.types, model.config.pad_token_id, len(texts) or 1, thresholds=thresholds
    )


def _gold(example):
    return {(entity.start, entity.end, entity.type) for entity in example.entities}


def _spread(rows, count):
    """``count`` of the rows at equal distances, or all if they are fewer."""
    return [rows[index * len(rows) // count] for index in range(count)] if len(rows) > count else rows


def _example_to_draw(examples):
    """Row of the short text with the most types and entities; the shortest with an entity if none is short."""

    def worth(row):
        example = examples[row]
        is_short = len(example.text) <= DRAWN_CHARACTERS
        kinds = len({entity.type for entity in example.entities})
        richness = (kinds, len(example.entities)) if is_short else (min(kinds, 1), 0)
        return is_short and kinds > 0, richness, -len(example.text)

    return max(range(len(examples)), key=worth)


def _compared(example, entities):
    """Text, gold and predicted entities, a line each, and what the match says of them."""
    scores = {(start, end, kind): score for start, end, kind, score in entities}
    lines = [example.text, ""]
    for match in match_entities(_gold(example), set(scores)):
        sides = []
        if match.gold:
            sides.append(f"gold {_named(match.gold, example.text)}")
        if match.predicted and match.kind != "correct":
            sides.append(f"predicted {_named(match.predicted, example.text)}")
        score = f" {scores[match.predicted]:.2f}" if match.predicted else ""
        lines.append(f"{match.kind}: {', '.join(sides)}{score}")
    return "\n".join(lines)


def _named(entity, text):
    start, end, kind = entity
    return f"{kind} {text[start:end]} [{start}, {end})"


def _tag(name):
    """A type's name as part of a tag, in which VisualDL allows no %."""
    return name.replace("%", "％")
