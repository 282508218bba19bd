"""What users write from Python that cannot be is refused in words: ``refusals.yaml``."""

import functools
from math import inf, nan
from pathlib import Path

import pytest
import yaml

from paddle_rope.tasks.classification.arguments import ClassificationConfig
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.experiments import long_range_decay
from paddle_rope.tasks.matching.model import MatchingConfig
from paddle_rope.tasks.ner.model import NerConfig
from paddle_rope.tasks.pretraining.arguments import parse_stages
from paddle_rope.tasks.recipes import get_predictor
from tests.tasks.test_predictors import MODELS

REFUSED = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
NAMES = {**vars(long_range_decay), "inf": inf, "nan": nan}
NAMES |= {one.__name__: one for one in (ClassificationConfig, MatchingConfig, NerConfig, parse_stages)}


@pytest.fixture
def predictors(whole):
    """dict from names of models to functions of options that give a predictor."""

    def opened(name, recipe=None, **options):
        own, keys = MODELS[name]
        return get_predictor(recipe or own)(**{"model_dir": whole(own, **keys) / "model", "device": "cpu", **options})

    return {name.replace("-", "_"): functools.partial(opened, name) for name in MODELS}


@pytest.mark.parametrize("chapter", REFUSED)
def test_what_cannot_be_is_refused_in_words(predictors, chapter):
    for expression, words in REFUSED[chapter].items():
        print(expression)  # pytest shows the one that is not refused
        with pytest.raises((InputError, ValueError), match=words):
            eval(expression, {**NAMES, **predictors})
