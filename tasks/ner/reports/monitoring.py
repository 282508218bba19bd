"""What VisualDL shows of an NER training run beside :mod:`tasks.common.training.monitor`."""

from __future__ import annotations

import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
from visualdl.component.base_component import pr_curve_raw

from paddle_rope.global_pointer import MASKED_LOGIT
from tasks.common.errors import visible
from tasks.common.inference import evaluated
from tasks.common.training.monitor import VisualDLMonitor, allowed_tag
from tasks.ner.batching import SpanCollator
from tasks.ner.lengths import reading_of
from tasks.ner.metrics import precision_recall_curves
from tasks.ner.prediction.predictor import find_in_windows
from tasks.ner.prediction.temperatures import temperatures_for
from tasks.ner.prediction.thresholds import above
from tasks.ner.prediction.windows import cut_text
from tasks.ner.reports.error_analysis import match_entities
from tasks.ner.reports.reliability import draw_reliability, reliability
from tasks.ner.reports.score_image import MAX_CHARACTERS, draw_scores

CURVE_STEPS = 100
# Spans that score less do not touch the curves.
LOWEST_LOGIT = math.log(1 / (CURVE_STEPS - 1))
# Spans above it that are collected for the curves: a model that does not tell spans apart yet has more in long texts.
MOST_CANDIDATES = 200_000
SAMPLES = 8
MOST_TYPES = 40  # with a curve and scores of their own
DRAWN_CHARACTERS = 20  # longest text that is preferred for the picture


class NerMonitor(VisualDLMonitor):
    """Adds to each evaluation: a precision-recall curve of each type, predictions of fixed dev texts beside the gold
    entities, and as pictures the scores of all spans of one dev text, and the reliability of probabilities with the
    temperatures that these dev data would give. VisualDL opens the oldest picture of a tag: all of them are under
    ``dev_history``, and the newest are once more, alone, under ``dev`` when training ends.

    Args: as of :class:`VisualDLMonitor`.
    """

    _types = None  # those that are shown

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._newest = {}  # name of a picture -> (pixels, step)

    def watch(self, model, dataset, step):
        """Show the fixed texts; called at an evaluation, before it.

        Args:
            model: :class:`tasks.ner.model.NerModel`.
            dataset: :class:`tasks.ner.batching.NerDataset` that is evaluated.
            step: training steps so far.

        Returns:
            A function that draws curves and reliability, to be called with the entities of each text that score above
            ``LOWEST_LOGIT``; None if they are too many.
        """
        if self.writer is None:
            return None
        self._types = _most_frequent(model.config.types, dataset.examples)
        self._show_samples(model, dataset, step)
        a_character = self._show_scores(model, dataset, step)
        if a_character * sum(len(example.text) for example in dataset.examples) > MOST_CANDIDATES:
            return None

        def show(candidates):
            self._show_curves(dataset, step, candidates)
            self._show_reliability(model.config, dataset, step, candidates)

        return show

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        """Of many types only the scores of those that have a curve."""
        if self._types is not None:
            shown = set(self._types)
            metrics = {
                name: value
                for name, value in metrics.items()
                if "_by_type/" not in name or name.split("_by_type/", 1)[1] in shown
            }
        super().on_evaluate(args, state, control, metrics=metrics, **kwargs)

    def on_train_end(self, args, state, control, **kwargs):
        if self.writer is not None:
            for name, (picture, step) in self._newest.items():
                self.writer.add_image(f"dev/{name}", picture, step)
        super().on_train_end(args, state, control, **kwargs)

    def _show_curves(self, dataset, step, candidates):
        gold = [example.entities for example in dataset.examples]
        for kind, curve in precision_recall_curves(gold, candidates, self._types, CURVE_STEPS).items():
            curve = {name: values.tolist() for name, values in curve.items()}
            # LogWriter.add_pr_curve of VisualDL 2.5.3 needs np.float, which numpy 1.24 has removed
            record = pr_curve_raw(
                tag=allowed_tag(f"dev/{kind}"), step=step, walltime=round(time.time() * 1000), **curve
            )
            self.writer._get_file_writer().add_record(record)

    def _show_reliability(self, config, dataset, step, candidates):
        gold = [example.entities for example in dataset.examples]
        temperatures = temperatures_for(gold, candidates, config.types, config.allow_overlap)
        found = above(candidates, config.thresholds, config.types, config.allow_overlap)
        result = reliability(gold, found, config.types, temperatures)
        if result["entities"]:
            self._show_picture("reliability", draw_reliability(result, f"step {step}"), step)

    def _show_picture(self, name, picture, step):
        self.writer.add_image(f"dev_history/{name}", picture, step)
        self._newest[name] = picture, step

    def _show_samples(self, model, dataset, step):
        rows = _spread([row for row, example in enumerate(dataset.examples) if example.entities], SAMPLES)
        texts = [dataset.texts[row] for row in rows]
        found = find_in_windows(model, texts, SAMPLES)
        for number, (row, entities) in enumerate(zip(rows, found), 1):
            text = visible(_compared(dataset.examples[row], entities), "\n")
            self.writer.add_text(f"dev/text_{number}", text, step)

    def _show_scores(self, model, dataset, step):
        """Draw the picture; returns how many spans a character of its text score above ``LOWEST_LOGIT``."""
        row = _example_to_draw(dataset.examples)
        example = dataset.examples[row]
        shown = example.text[:MAX_CHARACTERS]
        reading = reading_of(model.config)
        window = cut_text(dataset.texts[row], reading.max_tokens, reading.overlap)[0].text
        scores, candidates = span_scores(model, window, len(shown))
        title = f"step {step}, {Path(example.where).name}: {shown}"
        self._show_picture("scores", draw_scores(shown, scores, example.spans, model.config.types, title), step)
        return candidates / max(1, max(end for _, end in window.offsets))


def span_scores(model, text, characters):
    """Scores of a text as they are drawn.

    Args:
        model: :class:`tasks.ner.model.NerModel`.
        text: :class:`tasks.ner.batching.TokenizedText`.
        characters: how many of its first characters are wanted.

    Returns:
        Array ``[types, characters, characters]``, logits by first and last character, NaN where there is no span; and
        how many spans of the whole text score above ``LOWEST_LOGIT``.
    """
    batch = SpanCollator(model.config.pad_token_id, with_labels=False)([text])
    logits = evaluated(model, batch)[0]  # [types, first, last or last - first]
    logits = logits.astype("float32").numpy()
    is_span = logits > MASKED_LOGIT / 2
    scores = np.full([len(logits), characters, characters], np.nan, dtype=np.float32)
    for first, column in np.argwhere(is_span.any(axis=0)):
        last = column if model.config.max_span_length is None else first + column
        start, end = text.offsets[first][0], text.offsets[last][1]
        if end <= characters:
            scores[:, start, end - 1] = logits[:, first, column]
    return scores, int((logits > LOWEST_LOGIT).sum())


def _most_frequent(types, examples):
    """The ``MOST_TYPES`` with the most gold entities, in their order."""
    counts = Counter(entity.type for example in examples for entity in example.entities)
    chosen = {kind for kind, _ in sorted(counts.items(), key=lambda item: -item[1])[:MOST_TYPES]}
    return [kind for kind in types if len(types) <= MOST_TYPES or kind in chosen]


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
    """Text, gold and predicted entities, a line each, and what the match says of them. VisualDL may show the lines as
    one, so that each entity begins with a dot."""
    lines = [example.text]
    for match in match_entities(example.entities, entities):
        sides = []
        if match.gold:
            sides.append(f"gold {_named(match.gold, example)}")
        if match.predicted and match.kind != "correct":
            sides.append(f"predicted {_named(match.predicted, example)}")
        score = f" {match.predicted.score:.2f}" if match.predicted else ""
        lines.append(f"• {match.kind}: {', '.join(sides)}{score}")
    return "\n".join(lines)


def _named(entity, example):
    return f"{entity.type} {example.surface(entity)} [{entity.start}, {entity.end})"
