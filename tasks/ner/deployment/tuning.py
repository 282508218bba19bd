"""Thresholds of a trained model, tuned on a labeled file."""

import json
import os
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import check_output_file, write_json
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.ner.batching import check_types
from tasks.ner.data.reading import read_examples
from tasks.ner.metrics import score_predictions
from tasks.ner.prediction.model_folder import refuse_exported
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.prediction.thresholds import LOWEST_THRESHOLD, above, thresholds_for
from tasks.ner.reports.printed import print_scores

MOST_CANDIDATES = 20  # a character
TEXTS_AT_ONCE = 256


def tune_model(
    model_dir: str | os.PathLike,
    data_file: str | os.PathLike,
    device: str | None = None,
    batch_size: int = 32,
    max_tokens: int | None = None,
) -> dict:
    """Tune the thresholds of a trained model on a labeled file, print the scores and write them into its config.json.

    Returns:
        dict with ``before`` and ``after``, scores as of :func:`tasks.ner.metrics.entity_scores`, and ``thresholds``, a
        number for each type.

    Raises:
        InputError: the model or the file is wrong, or the folder cannot be written.
    """
    quiet_paddlenlp()
    examples = read_examples(data_file)
    if not any(example.entities for example in examples):
        raise InputError(f"{data_file}: no entity is labeled in it; give data with entities")
    refuse_exported([model_dir], "is exported; tune the trained model, then export it")
    config_file = Path(model_dir) / "config.json"
    predictor = NerPredictor(model_dir, device, batch_size, max_tokens, show_progress=True)
    check_output_file(config_file)
    types = predictor.types
    for example in examples:
        check_types(example, types)
    candidates = _candidates(predictor, [example.text for example in examples])
    config = predictor.model.config
    tuned = thresholds_for(examples, candidates, types, config.allow_overlap)
    scores = {}
    for name, thresholds in (("before", config.thresholds), ("after", tuned)):
        found = above(candidates, thresholds, types, config.allow_overlap)
        scores[name] = score_predictions(examples, found, types)
        print_scores(f"{data_file} {name}", scores[name])
    write_json(config_file, {**json.loads(config_file.read_text(encoding="utf-8")), "thresholds": tuned})
    for kind, threshold in zip(types, tuned):
        if threshold:
            print(f"{kind}: {threshold:.4f}")
    print(f"{config_file}: thresholds written, 0 for the other types")
    print(f"micro F1 {scores['before']['f1']:.4f} before, {scores['after']['f1']:.4f} after")
    return {**scores, "thresholds": dict(zip(types, tuned))}


def _candidates(predictor, texts):
    """For each text its entities that score above ``LOWEST_THRESHOLD``.

    Raises:
        InputError: they are too many to hold, as those of a model that has not learned to tell spans apart.
    """
    candidates = []
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        part = texts[begin : begin + TEXTS_AT_ONCE]
        candidates += predictor.find(part, thresholds=LOWEST_THRESHOLD)
        most = MOST_CANDIDATES * sum(map(len, part))
        if sum(map(len, candidates[begin:])) > max(most, 1000):
            raise InputError(
                f"the model scores more than {MOST_CANDIDATES} spans a character above {LOWEST_THRESHOLD}: it does not "
                "tell spans apart yet; train it longer"
            )
    return candidates
