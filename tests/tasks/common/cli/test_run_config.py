"""One YAML file and the command line after it."""

from dataclasses import dataclass, field
from typing import Optional

import pytest

from tasks.common.cli.run_config import parse_arguments, read_run_config
from tasks.common.errors import InputError


@dataclass
class Sizes:
    hidden_size: int = 8
    dropout: float = 0.5
    shuffle: bool = False
    name: Optional[str] = None


@dataclass
class Rest:
    needed: str = "no"
    labels: list[str] = field(default_factory=list)
    windows: Optional[bool] = None


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "run.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def error_of(function, *arguments):
    with pytest.raises(InputError) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- the file


def test_file_gives_typed_values_and_lists(write):
    path = write("a: 1\nb: 0.5\nc: true\nd: 文本\ne: [x, y]\nf: null\n")
    assert read_run_config(path, []) == {"a": 1, "b": 0.5, "c": True, "d": "文本", "e": ["x", "y"], "f": None}


@pytest.mark.parametrize("content", ["", "# only a comment\n"])
def test_file_without_keys_is_an_empty_configuration(write, content):
    assert read_run_config(write(content), ["--a", "1"]) == {"a": "1"}


@pytest.mark.parametrize(
    "content, line, problem",
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("a: 1\nb: 2020-02-31\n", 2, "'2020-02-31' is no timestamp: day is out of range"),
        ("a: !!int x\n", 1, "'x' is no int: "),
        ("a: 1\nb:\n  - !!timestamp x\n", 3, "'x' is no timestamp: "),
        ("a: !!bool x\n", 1, "'x' is no bool: "),
        (f"a: {'9' * 5000}\n", 1, "999... is no int: Exceeds the limit"),
        (f"a: 0x{'f' * 5000}\n", 1, "fff... is no int: Exceeds the limit"),
        ("? [a]\n: 1\n", 1, "unhashable"),
    ],
)
def test_broken_yaml_is_an_error_with_its_line(write, content, line, problem):
    path = write(content)
    message = error_of(read_run_config, path, [])
    assert message.startswith(f"{path}:{line}: broken YAML") and problem in message
    assert message.endswith("write one 'key: value' a line")


def test_yaml_nested_deep_is_an_error(write):
    path = write(f"a: {'[' * 5000}\n")
    assert error_of(read_run_config, path, []).startswith(f"{path}: broken YAML (nested too deep)")


@pytest.mark.parametrize("content", ["- a\n- b\n", "word\n", "1: one\n"])
def test_file_that_is_no_mapping_of_names_is_an_error(write, content):
    path = write(content)
    assert error_of(read_run_config, path, []) == f"{path}:1: not a mapping; write one 'key: value' a line"


def test_missing_file_folder_and_other_encoding_are_errors(write, tmp_path):
    missing = tmp_path / "no.yaml"
    assert error_of(read_run_config, missing, []).startswith(f"{missing}: no such configuration file; ")
    assert error_of(read_run_config, tmp_path, []).startswith(f"{tmp_path}: cannot be read (")
    assert "give a YAML file in UTF-8" in error_of(read_run_config, write("a: 中\n".encode("gb18030")), [])


@pytest.mark.parametrize(
    "name, listed, left_out",
    [
        ("configs/matching/own.yaml", ["configs/matching/demo.yaml", "configs/matching/own_data.yaml"], "configs/ner/"),
        ("own.yaml", ["configs/ner/own_data.yaml", "configs/matching/own_data.yaml"], "configs/experiments/"),
        ("configs/experiments/deme.yaml", ["configs/experiments/demo.yaml"], "configs/ner/"),
    ],
)
def test_configurations_are_listed_where_one_is_missing(name, listed, left_out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as after an installation: there is no folder configs here
    message = error_of(read_run_config, name)
    assert message.startswith(f"{name}: no such configuration file; ")
    names = message.replace(",", "").split()
    assert {*listed} <= {*names} and not [one for one in names[1:] if one.startswith(left_out)]
    assert all(read_run_config(one) for one in listed)


# ---- the command line


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--a", "2"], {"a": "2"}),
        (["--a=2"], {"a": "2"}),
        (["--a=x=y"], {"a": "x=y"}),
        (["--a="], {"a": ""}),
        (["--a", "-2"], {"a": "-2"}),
        (["--flag"], {"a": 1, "flag": "true"}),
        (["--flag", "--a", "2"], {"a": "2", "flag": "true"}),
        (["--a", "2", "--a", "3"], {"a": "3"}),
        (["--new", "z"], {"a": 1, "new": "z"}),
        ([], {"a": 1}),
    ],
)
def test_words_override_the_file(write, words, expected):
    assert read_run_config(write("a: 1\n"), words) == expected


@pytest.mark.parametrize("words", [["stray"], ["--a", "1", "stray"], ["-a", "1"], ["--"]])
def test_word_that_is_no_option_is_an_error(write, words):
    message = error_of(read_run_config, write("a: 1\n"), words)
    assert message.startswith("unexpected argument ") and message.endswith("; write options as --key value")


# ---- dataclasses


def test_values_get_the_type_of_their_key_from_yaml_and_from_the_command_line():
    typed = Sizes(hidden_size=4, dropout=0.25, shuffle=True, name="x"), Rest("y", labels=["a", "b"], windows=False)
    config = {"hidden_size": 4, "dropout": 0.25, "shuffle": True, "name": "x", "needed": "y", "labels": ["a", "b"]}
    config["windows"] = False
    assert parse_arguments(config, Sizes, Rest) == typed
    words = {"hidden_size": "4", "dropout": "25e-2", "shuffle": "true", "windows": "No"}
    assert parse_arguments({**config, **words}, Sizes, Rest) == typed


def test_none_leaves_a_key_at_its_default():
    (sizes,) = parse_arguments({"hidden_size": None, "name": None}, Sizes)
    assert sizes == Sizes()


def test_an_empty_string_is_the_default_where_that_is_none():
    assert parse_arguments({"name": ""}, Sizes)[0].name is None


def test_false_switches_a_flag_off():
    assert parse_arguments({"shuffle": "false"}, Sizes)[0].shuffle is False
    assert parse_arguments({"shuffle": False}, Sizes)[0].shuffle is False


@pytest.mark.parametrize("value", ["-1", "a b", "--x", "中文 与 空格", "a=b", "@file"])
def test_strings_arrive_as_they_are(value):
    assert parse_arguments({"name": value}, Sizes)[0].name == value


@pytest.mark.parametrize(
    "key, near", [("hiden_size", "hidden_size"), ("drop", "dropout"), ("size", "hidden_size"), ("zzz", None)]
)
def test_unknown_key_is_an_error_that_names_one_that_is_near(key, near):
    message = error_of(parse_arguments, {key: 1}, Sizes)
    suggestion = "leave it out" if near is None else f"did you mean {near!r}?"
    assert message == f"unknown key {key!r}; {suggestion}"


def test_key_is_not_abbreviated():
    assert "unknown key 'hidden'" in error_of(parse_arguments, {"hidden": 1}, Sizes)


@pytest.mark.parametrize(
    "config, message",
    [
        ({"hidden_size": "big"}, "hidden_size must be a whole number, got 'big'"),
        ({"hidden_size": 0.5}, "hidden_size must be a whole number, got 0.5"),
        ({"dropout": {"a": 1}}, "dropout must be a number, got {'a': 1}"),
        ({"shuffle": "maybe"}, "shuffle must be true or false, got 'maybe'"),
        ({"hidden_size": [1, 2]}, "key 'hidden_size': [1, 2] is a list; give one value"),
    ],
)
def test_value_of_wrong_type_is_an_error(config, message):
    assert message in error_of(parse_arguments, config, Sizes)
