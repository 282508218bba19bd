"""The recipes by name."""

from importlib import import_module
from types import SimpleNamespace

from tasks.common.errors import InputError

MODULES = {
    **{name: f"tasks.{name}.recipe" for name in ("ner", "matching", "classification", "pretraining", "language_model")},
    "relative_position": "tasks.experiments.relative_position.recipe",
}


def get_recipe(name):
    """The recipe of a name.

    Raises:
        InputError: there is none.
    """
    if name not in MODULES:
        raise InputError(f"recipe {name!r}: there is none; take one of {', '.join(MODULES)}")
    module = import_module(MODULES[name])
    together = getattr(module, "score_together", lambda config, run_dirs: None)
    return SimpleNamespace(
        name=name, scores=module.FIGURES, resolve=module.resolve_config, train=module.train, resume=module.resume,
        score_ensemble=together,
    )  # fmt: skip
