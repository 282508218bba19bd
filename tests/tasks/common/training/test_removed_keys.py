"""Configuration keys that are gone: one that did nothing passes, one that was in use is refused by name."""

import pytest

from tasks.common.errors import InputError
from tasks.common.training.settings import resolve_config, without_removed_keys
from tasks.ner.arguments import NerArguments

# What config.yaml of a run of before holds of them, where none is in use.
UNUSED = {
    "score_scaling_length": None,
    "convolution_size": 3,
    "position_gaps": None,
    "join_share": 0.0,
    "join_characters": None,
}
REQUIRED = {"train_file": "train.jsonl", "output_dir": "run", "device": "cpu"}


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
def test_a_key_in_use_is_refused_by_its_name(key, value):
    with pytest.raises(InputError) as raised:
        resolve_config({**REQUIRED, key: value}, NerArguments)
    message = str(raised.value)
    assert message.startswith(f"configuration: {key} {value!r} was removed")
    assert "did not help" in message and "e394b37" in message and "\n" not in message


@pytest.mark.parametrize(
    "given, convolutions",
    [
        ("input,value,output", True),
        ("output, value,input", True),
        (["input", "value", "output"], True),
        (True, True),
        ("true", True),
        ("no", False),
        ("", False),
        ([], False),
        (None, False),
    ],
)
def test_three_convolutions_by_their_names_are_true(given, convolutions):
    settings = resolve_config({**REQUIRED, "convolutions": given}, NerArguments)
    assert settings.keys.convolutions is convolutions and settings.config["convolutions"] is convolutions


def test_names_of_no_convolution_are_no_truth():
    with pytest.raises(InputError, match="convolutions"):
        resolve_config({**REQUIRED, "convolutions": "inputs"}, NerArguments)


def test_keys_of_before_that_are_not_in_use_are_left_out():
    assert without_removed_keys({**UNUSED, "seed": 3}) == {"seed": 3}
    settings = resolve_config({**REQUIRED, **UNUSED}, NerArguments)
    assert not {*UNUSED} & settings.config.keys()
