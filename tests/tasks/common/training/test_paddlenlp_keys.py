"""Keys of PaddleNLP: documented, refused, or passed through, as the installed one has them."""

from typing import get_args, get_type_hints

import pytest
from paddlenlp.trainer import SchedulerType, TrainingArguments

from tasks.common.errors import InputError
from tasks.common.training.paddlenlp_keys import DOCUMENTED, INSTEAD, SCHEDULERS, TrainingKeys, paddlenlp_names
from tasks.common.training.settings import resolve_config
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments

GIVEN = {"train_file": "train.jsonl", "output_dir": "run", "device": "cpu"}


def test_names_and_types_are_those_of_paddlenlp():
    theirs, ours = get_type_hints(TrainingArguments), get_type_hints(TrainingKeys)
    assert {*DOCUMENTED, *INSTEAD} <= paddlenlp_names() <= {*TrainingArguments.__dataclass_fields__}
    assert list(SCHEDULERS) == [kind.value for kind in SchedulerType]
    for name, kind in ours.items():
        assert {kind, *get_args(kind)} & {theirs[name], *get_args(theirs[name])}, name


def test_a_recipe_has_its_own_defaults():
    for arguments, epochs in ((NerArguments, 14), (MatchingArguments, 5)):
        settings = resolve_config(GIVEN, arguments)
        assert settings.config["num_train_epochs"] == settings.training.num_train_epochs == epochs
        assert settings.config.keys().isdisjoint(arguments.PLAN.fixed)


def test_a_key_that_no_recipe_documents_is_passed_through_in_its_type():
    settings = resolve_config({**GIVEN, "adam_beta2": "0.95", "logging_first_step": "true"}, NerArguments)
    assert (settings.training.adam_beta2, settings.training.logging_first_step) == (0.95, True)
    assert (settings.config["adam_beta2"], settings.config["logging_first_step"]) == (0.95, True)


@pytest.mark.parametrize(
    "key, said",
    [
        *((key, key) for key in (*INSTEAD, *NerArguments.PLAN.fixed, *NerArguments.PLAN.closed)),
        ("max_length", "max_characters"),
        ("adam_beta3", "unknown key"),
        ("learning_rte", "did you mean 'learning_rate'"),
    ],
)
def test_a_key_that_contradicts_the_recipe_or_is_unknown_is_refused(key, said):
    with pytest.raises(InputError, match=said):
        resolve_config({**GIVEN, key: 1}, NerArguments)
