"""The recipes by name: the one place where names of recipes become code."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from tasks.common.errors import InputError

if TYPE_CHECKING:
    from tasks.common.recipe import Recipe

_HOMES = {
    "ner": "tasks.ner.recipe:NerRecipe",
    "matching": "tasks.matching.recipe:MatchingRecipe",
    "classification": "tasks.classification.recipe:ClassificationRecipe",
    "pretraining": "tasks.pretraining.recipe:PretrainingRecipe",
    "language_model": "tasks.language_model.recipe:LanguageModelRecipe",
    "annotation": "tasks.experiments.annotation.recipe:AnnotationRecipe",
    "relative_position": "tasks.experiments.relative_position.recipe:RelativePositionRecipe",
}
RECIPES = tuple(_HOMES)


def get_recipe(name: str) -> Recipe:
    """The recipe of a name, one of :data:`RECIPES`; it is imported only now, and paddle with it.

    Raises:
        InputError: there is no such recipe.
    """
    if name not in _HOMES:
        raise InputError(f"no recipe {name!r}; the recipes are {', '.join(RECIPES)}")
    return pkgutil.resolve_name(_HOMES[name])()
