"""One YAML file and the command line after it; keys: documented, refused, removed, or passed through to PaddleNLP."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, get_args, get_type_hints

import pytest
from paddlenlp.trainer import SchedulerType, TrainingArguments

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.settings import (
    DOCUMENTED,
    INSTEAD,
    SCHEDULERS,
    TrainingKeys,
    check_config,
    finished,
    parse_arguments,
)
from paddle_rope.tasks.matching.arguments import MatchingArguments
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.pretraining.arguments import PretrainingArguments
from tests.tasks.ner.conftest import error_of


@dataclass
class Keys:
    hidden_size: int = 8
    dropout: float = 0.5
    shuffle: bool = False
    name: Optional[str] = None


@dataclass
class Rest:
    needed: str = "no"
    labels: list[str] = field(default_factory=list)
    windows: Optional[bool] = None
    rotary: Optional[dict[str, Any]] = None


def test_file_gives_typed_values_and_lists(write):
    path = write("a: 1\nb: 0.5\nc: true\nd: 文本\ne: [x, y]\nf: null\n")
    assert read_run_config(path, []) == {"a": 1, "b": 0.5, "c": True, "d": "文本", "e": ["x", "y"], "f": None}
    assert read_run_config(write("# only a comment\n"), ["--a", "1"]) == {"a": "1"}
    assert read_run_config(write("a: &a {x: 1}\nb: {<<: *a, y: *a}\n")) == {"a": {"x": 1}, "b": {"x": 1, "y": {"x": 1}}}


@pytest.mark.parametrize("value", ["0x" + "f" * 5000, "1" + ":59" * 500, "&a [*a]"], ids=lambda value: value[:9])
def test_a_file_that_would_take_long_is_an_error(write, value):  # more: files.yaml, tests/attack/text_doors.py
    assert ": broken YAML" in error_of(read_run_config, write(f"a: {value}\n"))


@pytest.mark.parametrize("words, expected", [
    ("--a 2", {"a": "2"}),
    ("--a=x=y", {"a": "x=y"}),
    ("--a=", {"a": ""}),
    ("--a -2", {"a": "-2"}),
    ("--flag", {"a": 1, "flag": "true"}),
    ("--flag --a 2", {"a": "2", "flag": "true"}),
    ("--a 2 --a 3", {"a": "3"}),
    ("--a 1 stray", "unexpected argument 'stray'"),
    ("-a 1", "unexpected argument '-a'"),
    ("--", "unexpected argument '--'"),
])  # fmt: skip
def test_words_override_the_file(write, words, expected):
    path = write("a: 1\n")
    if isinstance(expected, str):
        assert error_of(read_run_config, path, words.split()).startswith(expected)
    else:
        assert read_run_config(path, words.split()) == expected


def parsed(config):
    return parse_arguments(config, Keys), parse_arguments(config, Rest)


def test_values_get_the_type_of_their_key_from_yaml_and_from_the_command_line():
    rest = Rest("y", labels=["a", "b"], windows=False, rotary={"base": 7})
    typed = Keys(hidden_size=4, dropout=0.25, shuffle=True, name="x"), rest
    config = {**vars(typed[0]), **vars(typed[1])}
    assert parsed(config) == typed
    words = {"hidden_size": "4", "dropout": "25e-2", "shuffle": "true", "windows": "No"}
    assert parsed({**config, **words, "labels": "a, b", "rotary": '{"base": 7}'}) == typed


@pytest.mark.parametrize("config, expected", [
    ({"hidden_size": None, "name": None}, Keys()),
    ({"name": "", "shuffle": "false"}, Keys()),  # an empty string is the default where that is None
    *(({"name": name}, Keys(name=name)) for name in ("-1", "a b", "--x", "中文 与 空格", "a=b", "@file")),
    *(({"hidden_size": value}, f"must be a whole number, got {value!r}") for value in ("big", 0.5)),
    ({"dropout": {"a": 1}}, "dropout must be a number, got {'a': 1}"),
    ({"shuffle": "maybe"}, "shuffle must be true or false, got 'maybe'"),
    ({"hidden_size": [1, 2]}, "key 'hidden_size': [1, 2] is a list; give one value"),
    *(({"rotary": value}, "rotary must be an object") for value in ("{", [1], "7")),
], ids=str)  # fmt: skip
def test_a_configuration_becomes_a_dataclass_or_an_error(config, expected):
    if isinstance(expected, str):
        assert expected in error_of(parsed, config)
    else:
        assert parsed(config) == (expected, Rest())


# ---- keys, as the installed PaddleNLP has them


def resolve(arguments=NerArguments, **keys):
    config = {"train_file": "train.jsonl", "output_dir": "run", "device": "cpu", **keys}
    return finished(check_config(config, arguments), arguments)


def test_names_and_types_are_those_of_paddlenlp():
    theirs, ours = get_type_hints(TrainingArguments), get_type_hints(TrainingKeys)
    assert {*DOCUMENTED, *INSTEAD} <= {*TrainingArguments.__dataclass_fields__}
    assert list(SCHEDULERS) == [kind.value for kind in SchedulerType]
    for name, kind in ours.items():
        assert {kind, *get_args(kind)} & {theirs[name], *get_args(theirs[name])}, name


def test_a_tilde_is_a_name_and_an_empty_key_is_not_given():
    keys = {"text_files": "x", "output_dir": "~/run", "device": "cpu", "pretrained": "small", "vocab_file": ""}
    training = finished(check_config({**keys, "stages": "9x9x9"}, PretrainingArguments), PretrainingArguments).training
    assert [Path(training.output_dir), Path(training.logging_dir)] == [Path("~/run/checkpoints"), Path("~/run/vdl")]
    assert not {training.output_dir[0], training.logging_dir[0]} & {"~", "/"}


def test_a_recipe_has_its_own_defaults_and_keys_reach_paddlenlp_typed():
    for arguments, epochs in ((NerArguments, 14), (MatchingArguments, 5)):
        settings = resolve(arguments)
        assert settings.config["num_train_epochs"] == settings.training.num_train_epochs == epochs
        assert settings.config.keys().isdisjoint(arguments.PLAN.fixed)
    settings = resolve(weight_decay="0.05", recompute="true")
    for found in (vars(settings.training), settings.config):
        assert (found["weight_decay"], found["recompute"]) == (0.05, True)


@pytest.mark.parametrize("key, value, said", [
    *((key, 1, key) for key in (*INSTEAD, *NerArguments.PLAN.fixed, *NerArguments.PLAN.closed)),
    ("hiden_size", 1, "^unknown key 'hiden_size' of ner; did you mean 'hidden_size'[?]$"),
    ("size", 1, "^unknown key 'size' of ner; did you mean 'head_size' or 'hidden_size' or 'intermediate_size'[?]$"),
    ("zzz", 1, "^unknown key 'zzz' of ner; paddle-rope train CONFIG.yaml --help lists the keys$"),
], ids=str)  # fmt: skip
def test_a_key_that_is_unknown_or_contradicts_the_recipe_is_refused(key, value, said):
    with pytest.raises(InputError, match=said):
        resolve(**{key: value})
