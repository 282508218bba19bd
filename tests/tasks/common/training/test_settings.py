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
    without_removed_keys,
)
from tasks.matching.arguments import MatchingArguments
from tasks.ner.arguments import NerArguments

GIVEN = {"train_file": "train.jsonl", "output_dir": "run", "device": "cpu"}
# What config.yaml of an earlier run holds of removed keys, where none is in use.
UNUSED = {
    "score_scaling_length": None, "convolution_size": 3, "position_gaps": None, "join_share": 0.0,
    "join_characters": None,
}  # fmt: skip


def test_names_and_types_are_those_of_paddlenlp():
    theirs, ours = get_type_hints(TrainingArguments), get_type_hints(TrainingKeys)
    assert {*DOCUMENTED, *INSTEAD} <= paddlenlp_names() <= {*TrainingArguments.__dataclass_fields__}
    assert list(SCHEDULERS) == [kind.value for kind in SchedulerType]
    for name, kind in ours.items():
        assert {kind, *get_args(kind)} & {theirs[name], *get_args(theirs[name])}, name


def test_a_recipe_has_its_own_defaults_and_other_keys_are_passed_through_in_their_type():
    for arguments, epochs in ((NerArguments, 14), (MatchingArguments, 5)):
        settings = resolve_config(GIVEN, arguments)
        assert settings.config["num_train_epochs"] == settings.training.num_train_epochs == epochs
        assert settings.config.keys().isdisjoint(arguments.PLAN.fixed)
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
        ("convolutions", "convolutions"),
    ],
)
def test_a_key_that_contradicts_the_recipe_or_is_unknown_is_refused(key, said):
    with pytest.raises(InputError, match=said):
        resolve_config({**GIVEN, key: "inputs" if key == "convolutions" else 1}, NerArguments)


@pytest.mark.parametrize(
    "key, value",
    [
        ("score_scaling_length", 64),
        ("score_scaling_length", "64"),  # of the command line
        ("convolution_size", 5),
        ("position_gaps", 1024),
        ("join_share", 0.3),
        ("join_characters", "100"),
        ("feature_map", "hedgehog"),
        ("feature_map", "identity"),
        ("feature_map", "squared_relu"),
        ("normalizer", "subtracted_mean"),
        ("decay", "token"),
        ("convolutions", "input,value"),
        ("convolutions", ["output"]),
    ],
)
def test_a_removed_key_in_use_is_refused_by_its_name(key, value):
    with pytest.raises(InputError) as raised:
        resolve_config({**GIVEN, key: value}, NerArguments)
    message = str(raised.value)
    assert message.startswith(f"configuration: {key} {value!r} was removed")
    assert "did not help" in message and "e394b37" in message and "\n" not in message


@pytest.mark.parametrize(
    "given, convolutions",
    [
        ("input,value,output", True), ("output, value,input", True), (["input", "value", "output"], True), (True, True),
        ("true", True), ("no", False), ("", False), ([], False), (None, False),
    ],
)  # fmt: skip
def test_three_convolutions_by_their_names_are_true(given, convolutions):
    settings = resolve_config({**GIVEN, "convolutions": given}, NerArguments)
    assert settings.keys.convolutions is convolutions and settings.config["convolutions"] is convolutions


def test_removed_keys_that_are_not_in_use_are_left_out():
    assert without_removed_keys({**UNUSED, "seed": 3}) == {"seed": 3}
    settings = resolve_config({**GIVEN, **UNUSED}, NerArguments)
    assert not {*UNUSED} & settings.config.keys()
