"""One YAML file describes one run; any of its keys can be overridden on the command line."""

import dataclasses
from pathlib import Path

import yaml

from tasks.common.errors import InputError, did_you_mean
from tasks.common.language import Message
from tasks.common.texts.text_files import shown
from tasks.common.tool.shipped import shipped


def read_run_config(config_file, overrides=()):
    """Read a YAML file and the command line after it.

    Args:
        config_file: path of a YAML mapping from keys to values.
        overrides: words of the command line, ``--key value``, ``--key=value``, or ``--key`` alone for true.

    Returns:
        dict of the file's keys with the overrides in place. Overridden values are strings, to which
        :func:`parse_arguments` gives the type of their key. The file itself, and files that values name, may be those
        of ``configs/`` that come with the package, see :func:`tasks.common.tool.shipped.shipped`.

    Raises:
        InputError: the file cannot be read as a mapping, or a word is not an option.
    """
    path = Path(shipped(config_file))
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            "{path}: no such configuration file; the ones of the project are in configs/", path=path
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            "{path}: cannot be read ({error}); give a YAML file in UTF-8", path=path, error=error
        ) from None
    try:
        config = yaml.load(text, _Loader)
    except RecursionError:
        raise InputError(f"{path}: broken YAML (nested too deep); write one 'key: value' a line") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or Message("not YAML")
        raise InputError(
            "{path}{line}: broken YAML ({problem}); write one 'key: value' a line",
            path=path,
            line=line,
            problem=problem,
        ) from None
    if config is None:
        config = {}
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise InputError("{path}:1: not a mapping; write one 'key: value' a line", path=path)
    config.update(parse_overrides(overrides))
    return {key: shipped(value) if isinstance(value, str) else value for key, value in config.items()}


class _Loader(yaml.SafeLoader):
    """As ``yaml.safe_load``; what looks like a date or a number and is none has its place in the error."""

    def construct_object(self, node, deep=False):
        try:
            value = super().construct_object(node, deep)
            if isinstance(value, int):
                str(value)  # refuses thousands of digits, also in hexadecimal
            return value
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{shown(getattr(node, 'value', None))} is no {kind}: {error}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def parse_overrides(words):
    """``--key value``, ``--key=value`` and ``--key`` alone, for true, as a dict."""
    config = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            raise InputError("unexpected argument {word!r}; write options as --key value", word=word)
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        config[key] = value
    return config


def parse_arguments(config, *dataclass_types):
    """Turn a configuration into dataclasses such as PaddleNLP's ``TrainingArguments``.

    Args:
        config: dict of keys and values; None leaves a key at its default.
        dataclass_types: the dataclasses; each key belongs to one of them.

    Returns:
        One instance of each, in their order.

    Raises:
        InputError: a key is unknown, a value does not fit or a required key is missing.
    """
    known = {field.name for cls in dataclass_types for field in dataclasses.fields(cls) if field.init}
    for key in config:
        if key not in known:
            suggestion = did_you_mean(key, known) or Message("leave it out")
            raise InputError("unknown key {key!r}; {suggestion}", key=key, suggestion=suggestion)
    from paddlenlp.trainer import PdArgumentParser

    parser = PdArgumentParser(dataclass_types, allow_abbrev=False)
    parser.error = _refuse
    takes_list = {action.dest for action in parser._actions if action.nargs in ("+", "*")}
    words = []
    for key, value in config.items():
        if isinstance(value, (list, tuple)):
            if key not in takes_list:
                raise InputError("key {key!r}: {value!r} is a list; give one value", key=key, value=value)
            words += [f"--{key}", *map(str, value)]
        elif value is not None:
            words.append(f"--{key}={value}")
    try:
        return parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    except ValueError as error:
        raise InputError("configuration: {error}", error=" ".join(str(error).split())) from None


def _refuse(message):
    raise InputError(
        "configuration: {message}; correct the value in the YAML file or on the command line", message=message
    )
