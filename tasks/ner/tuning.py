"""Thresholds and temperatures of a trained model, chosen on a labeled file."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.files import check_output_file, write_json
from paddle_rope.tasks.common.model_folder import is_exported
from paddle_rope.tasks.ner import calibration
from paddle_rope.tasks.ner.arguments import of_types
from paddle_rope.tasks.ner.batching import check_types
from paddle_rope.tasks.ner.data.reading import check_labeled, read_examples
from paddle_rope.tasks.ner.formats.source import STOP
from paddle_rope.tasks.ner.metrics import entity_scores
from paddle_rope.tasks.ner.prediction.predictor import NerPredictor
from paddle_rope.tasks.ner.reports.printed import print_scores
from paddle_rope.tasks.ner.reports.reliability import error_line, reliability

THRESHOLDS, TEMPERATURES = TUNED = ("thresholds", "temperatures")


def tune_model(
    model_dir: str | os.PathLike,
    data_file: str | os.PathLike,
    only: str | None = None,
    fields: str | None = None,
    on_error: str = STOP,
    **options: Any,
) -> dict:
    """Tune thresholds and temperatures of a trained model on a labeled file, print the scores and write them into its
    config.json. ``only`` names one of the two and leaves the other unchanged; ``fields`` and ``on_error`` go
    to :func:`~paddle_rope.tasks.ner.data.reading.read_examples`, and ``options`` to
    :class:`~paddle_rope.tasks.ner.prediction.predictor.NerPredictor`.

    Returns:
        dict with ``before`` and ``after``, scores as in :func:`paddle_rope.tasks.ner.metrics.entity_scores` with
        ``reliability``; ``thresholds`` and ``temperatures``, dicts from a type to a number.

    Raises:
        InputError: the model or the file is wrong, or the folder cannot be written.
    """
    if only not in (None, *TUNED):
        raise InputError(f"only {only!r}: must be {' or '.join(TUNED)}")
    examples = read_examples(data_file, fields=fields, on_error=on_error)
    check_labeled(examples, data_file)
    if is_exported(model_dir):
        raise InputError(f"{model_dir}: is exported; tune the trained model, then export it")
    config_file = Path(model_dir) / "config.json"
    predictor = NerPredictor(model_dir, show_progress=sys.stderr.isatty(), **options)
    check_output_file(config_file)
    types = predictor.types
    for example in examples:
        check_types(example, types)
    texts = [example.text for example in examples]
    candidates = calibration.find_candidates(
        lambda some: predictor.find(some, None, calibration.LOWEST_THRESHOLD), texts, [*map(len, texts)]
    )
    if candidates is None:
        raise InputError(calibration.NOT_APART)
    config = predictor.model.config
    before = {name: of_types(getattr(config, name), len(types)) for name in TUNED}
    after = dict(before)
    if only != TEMPERATURES:
        after[THRESHOLDS] = calibration.thresholds_for(examples, candidates, types, config.allow_overlap)
    if only != THRESHOLDS:
        after[TEMPERATURES] = calibration.temperatures_for(examples, candidates, types, config.allow_overlap)
    scores = {}
    for name, values in {"before": before, "after": after}.items():
        found = calibration.above_thresholds(candidates, values[THRESHOLDS], types, config.allow_overlap)
        scores[name] = entity_scores(examples, found, types)
        scores[name]["reliability"] = reliability(examples, found, types, values[TEMPERATURES])
        print_scores(f"{data_file} {name}", scores[name])
        print(error_line(scores[name]["reliability"]))
    tuned = {name: after[name] for name in TUNED if only in (None, name)}
    write_json(config_file, {**json.loads(config_file.read_text(encoding="utf-8")), **tuned})
    for name, usual in ((THRESHOLDS, 0), (TEMPERATURES, 1)):
        if name in tuned:
            print(f"{name}, {usual} for the other types:")
            print(*(f"{visible(kind)}: {one:.4f}" for kind, one in zip(types, tuned[name]) if one != usual), sep="\n")
    print(f"{config_file}: {' and '.join(tuned)} written")
    print(f"micro F1 {scores['before']['f1']:.4f} before, {scores['after']['f1']:.4f} after")
    return {**scores, **{name: dict(zip(types, values)) for name, values in after.items()}}
