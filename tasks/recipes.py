"""The recipes by name. Naming one imports it; the names alone import nothing."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

# name -> module, its predictor's module and class
_HOMES = {
    "ner": ("tasks.ner.recipe", "tasks.ner.prediction.predictor", "NerPredictor"),
    "matching": ("tasks.matching.recipe", "tasks.matching.prediction", "MatchingPredictor"),
    "classification": ("tasks.classification.recipe", "tasks.classification.prediction", "Classifier"),
    "pretraining": ("tasks.pretraining.recipe", None, None),
    "relative_position": ("tasks.experiments.relative_position.recipe", None, None),
}


def get_recipe(name):
    """The recipe of a name: ``train(config)``, ``resume(run_dir)``, ``scores``, ``score_ensemble``,
    ``evaluate(model_dir, data_file, device, batch_size, ...)`` and ``predictor(model_dir, ...)``."""
    home, predictors, predictor = _HOMES[name]
    module = importlib.import_module(home)

    def evaluate(model_dir, data_file, device, batch_size, max_tokens=None, max_characters=None, **options):
        longest = max_characters if max_tokens is None else max_tokens
        return module.evaluate(model_dir, data_file, device, batch_size, longest, **options)

    def new_predictor(model_dir, max_tokens=None, max_characters=None, **options):
        longest = max_characters if max_tokens is None else max_tokens
        predictor_class = getattr(importlib.import_module(predictors), predictor)
        return predictor_class(model_dir, max_length=longest, **options)

    return SimpleNamespace(
        train=module.train,
        resume=module.resume,
        scores=getattr(module, "FIGURES", ()),
        score_ensemble=getattr(module, "score_together", None),
        evaluate=evaluate,
        predictor=new_predictor,
    )
