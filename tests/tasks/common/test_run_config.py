"""One YAML file and the command line after it."""

from dataclasses import dataclass, field
from typing import Any, Optional

import pytest

from tasks.common.errors import InputError
from tasks.common.run_config import parse_arguments, read_run_config


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


def error_of(function, *arguments):
    with pytest.raises(InputError) as caught:
        function(*arguments)
    return str(caught.value)


def test_file_gives_typed_values_and_lists(write):
    path = write("a: 1\nb: 0.5\nc: true\nd: 文本\ne: [x, y]\nf: null\n")
    assert read_run_config(path, []) == {"a": 1, "b": 0.5, "c": True, "d": "文本", "e": ["x", "y"], "f": None}
    assert read_run_config(write("# only a comment\n"), ["--a", "1"]) == {"a": "1"}


@pytest.mark.parametrize("value", ["9" * 5000, "0x" + "f" * 5000, "[" * 1500], ids=lambda value: value[:9])
def test_a_file_that_would_take_long_is_an_error(write, value):  # more: tests/tasks/refused_files.yaml
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


def test_values_get_the_type_of_their_key_from_yaml_and_from_the_command_line():
    typed = (
        Keys(hidden_size=4, dropout=0.25, shuffle=True, name="x"),
        Rest("y", labels=["a", "b"], windows=False, rotary={"base": 7}),
    )
    config = {**vars(typed[0]), **vars(typed[1])}
    assert parse_arguments(config, Keys, Rest) == typed
    words = {
        "hidden_size": "4",
        "dropout": "25e-2",
        "shuffle": "true",
        "windows": "No",
        "labels": "a, b",
        "rotary": '{"base": 7}',
    }
    assert parse_arguments({**config, **words}, Keys, Rest) == typed


@pytest.mark.parametrize("config, expected", [
    ({"hidden_size": None, "name": None}, Keys()),
    ({"name": "", "shuffle": "false"}, Keys()),  # an empty string is the default where that is None
    *(({"name": name}, Keys(name=name)) for name in ("-1", "a b", "--x", "中文 与 空格", "a=b", "@file")),
    ({"hiden_size": 1}, "unknown key 'hiden_size'; did you mean 'hidden_size'?"),
    ({"drop": 1}, "unknown key 'drop'; did you mean 'dropout'?"),
    ({"size": 1}, "unknown key 'size'; did you mean 'hidden_size'?"),
    ({"zzz": 1}, "unknown key 'zzz'; leave it out"),
    ({"hidden": 1}, "unknown key 'hidden'"),  # no abbreviation
    *(({"hidden_size": value}, f"must be a whole number, got {value!r}") for value in ("big", 0.5)),
    ({"dropout": {"a": 1}}, "dropout must be a number, got {'a': 1}"),
    ({"shuffle": "maybe"}, "shuffle must be true or false, got 'maybe'"),
    ({"hidden_size": [1, 2]}, "key 'hidden_size': [1, 2] is a list; give one value"),
    *(({"rotary": value}, "rotary must be an object") for value in ("{", [1], "7")),
], ids=str)  # fmt: skip
def test_a_configuration_becomes_a_dataclass_or_an_error(config, expected):
    if isinstance(expected, str):
        assert expected in error_of(parse_arguments, config, Keys, Rest)
    else:
        assert parse_arguments(config, Keys, Rest) == (expected, Rest())
