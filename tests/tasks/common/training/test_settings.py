"""Keys of a configuration: documented, refused, removed, or passed through, as the installed PaddleNLP has them."""

from typing import get_args, get_type_hints

import pytest
from paddlenlp.trainer import SchedulerType, TrainingArguments

from tasks.common.errors import InputError
from tasks.common.training.settings import (
    DOCUMENTED,
    INSTEAD,
    SCHEDULERS,
    TrainingKeys,
    paddlenlp_names,
    resolve_config,
)
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments


def resolve(arguments=NerArguments, **keys):
    return resolve_config({"train_file": "train.jsonl", "output_dir": "run", "device": "cpu", **keys}, arguments)


def test_names_and_types_are_those_of_paddlenlp():
    theirs, ours = get_type_hints(TrainingArguments), get_type_hints(TrainingKeys)
    assert {*DOCUMENTED, *INSTEAD} <= paddlenlp_names() <= {*TrainingArguments.__dataclass_fields__}
    assert list(SCHEDULERS) == [kind.value for kind in SchedulerType]
    for name, kind in ours.items():
        assert {kind, *get_args(kind)} & {theirs[name], *get_args(theirs[name])}, name


def test_a_recipe_has_its_own_defaults_and_other_keys_are_passed_through_in_their_type():
    for arguments, epochs in ((NerArguments, 14), (MatchingArguments, 5)):
        settings = resolve(arguments)
        assert settings.config["num_train_epochs"] == settings.training.num_train_epochs == epochs
        assert settings.config.keys().isdisjoint(arguments.PLAN.fixed)
    settings = resolve(adam_beta2="0.95", logging_first_step="true")
    for found in (vars(settings.training), settings.config):
        assert (found["adam_beta2"], found["logging_first_step"]) == (0.95, True)


@pytest.mark.parametrize("key, value, said", [
    *((key, 1, key) for key in (*INSTEAD, *NerArguments.PLAN.fixed, *NerArguments.PLAN.closed)),
    ("convolutions", ["output"], "^configuration: convolutions .* was removed.*did not help.*e394b37"),
], ids=str)  # fmt: skip
def test_a_key_that_is_unknown_or_removed_or_contradicts_the_recipe_is_refused(key, value, said):
    with pytest.raises(InputError, match=said):
        resolve(**{key: value})


@pytest.mark.parametrize("given, convolutions", [
    ("input,value,output", True), ("output, value,input", True), (["input", "value", "output"], True), (True, True),
    ("true", True), ("no", False), ("", False), ([], False), (None, False),
])  # fmt: skip
def test_three_convolutions_by_their_names_are_true(given, convolutions):
    settings = resolve(convolutions=given)
    assert settings.keys.convolutions is convolutions and settings.config["convolutions"] is convolutions


def test_removed_keys_that_are_not_in_use_are_left_out():
    unused = {"score_scaling_length": None, "convolution_size": 3, "position_gaps": None, "join_share": 0.0}
    unused["join_characters"] = None  # as config.yaml of an earlier run holds them
    assert resolve(**unused).config == resolve().config
