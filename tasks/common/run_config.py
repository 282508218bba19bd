"""One YAML file describes one run; any of its keys can be overridden on the command line."""

import math
import os
from pathlib import Path

import yaml

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import read_text

CONFIGS = "configs"
ALIASES = {"epochs": "num_train_epochs", "lr": "learning_rate", "batch_size": "per_device_train_batch_size"}


def read_run_config(config_file, overrides=()):
    """The keys of a YAML file (None: no keys), overridden by the command line, see :func:`parse_overrides`.

    Overridden values are strings, which ``training/settings.py`` converts to the type of their key. Keys may have the
    short names ``ALIASES``. The file itself, and files that values name, may be files of ``configs/`` shipped with the
    package, see :func:`shipped`. Raises InputError if the file cannot be read as a mapping, or a word is not an option.
    """
    config = {} if config_file is None else read_mapping(shipped(config_file), "write one 'key: value' a line")
    config = {ALIASES.get(key, key): value for key, value in config.items()}
    config.update({ALIASES.get(key, key): value for key, value in parse_overrides(overrides).items()})
    return {key: shipped(value) if isinstance(value, str) else value for key, value in config.items()}


MOST_DIGITS = 1000  # of a number
MOST_REPEATED = 100_000  # characters that aliases may add to a file: a few lines of them could stand for billions


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # in C, if PyYAML has it: ten times faster
    """Refuses a key that a mapping has twice, whose last value YAML would take, and endless numbers."""

    def construct_mapping(self, node, deep=False):
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):  # others are refused below
                if key.value in keys:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} a second time", problem_mark=key.start_mark)
                keys.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_number(self, node):
        if len(node.value) > MOST_DIGITS:
            raise yaml.MarkedYAMLError(problem="a number without end", problem_mark=node.start_mark)
        return self.construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)


def read_mapping(path, remedy):
    """The mapping of a YAML file, from names to any values; raises InputError, with the ``remedy``, if it is none."""
    content, path = read_text(path)
    try:
        _check_aliases(content)
        config = yaml.load(content, _Loader) or {}
    except Exception as error:  # YAML's errors, or ValueError and others for an impossible date
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise InputError(f"{path}{line}: broken YAML ({getattr(error, 'problem', error)}); {remedy}") from None
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise InputError(f"{path}:1: not a mapping; {remedy}")
    return config


def _check_aliases(content):
    """Raise YAML's error if aliases add more than ``MOST_REPEATED`` characters, or one stands for what it is in."""
    size, sizes, begun = 0, {}, []  # so far; of what has an anchor; (anchor, size before) of what is not complete
    for event in yaml.parse(content, _Loader):
        if isinstance(event, yaml.AliasEvent):
            size += sizes.get(event.anchor, math.inf)
        elif isinstance(event, yaml.ScalarEvent):
            size += len(event.value) + 1
            sizes[event.anchor] = len(event.value) + 1
        elif isinstance(event, yaml.CollectionStartEvent):
            begun.append((event.anchor, size))
            size += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = begun.pop()
            sizes[anchor] = size - before
        if size > len(content) + MOST_REPEATED:
            raise yaml.MarkedYAMLError(problem="aliases stand for too much", problem_mark=event.start_mark)


def parse_overrides(words):
    """A dict of the options ``--key value``, ``--key=value``, and ``--key`` alone, which means true."""
    config = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            raise InputError(f"unexpected argument {word!r}; write options as --key value")
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = words.pop(0) if words and not words[0].startswith("--") else "true"
        config[key] = value
    return config


def shipped(name):
    """The path ``name``; if no such file exists but the package ships one of this name in ``configs/``, its path as
    str."""
    parts = Path(name).parts
    # os.path.exists, unlike Path.exists, answers without permission and for names that no file can have
    if parts[:1] != (CONFIGS,) or os.path.exists(name):
        return name
    tasks = Path(__file__).resolve().parents[1]  # of the installed package; in the repository they lie next to it
    files = (folder.joinpath(*parts) for folder in (tasks, tasks.parent))
    return next((str(file) for file in files if os.path.isfile(file)), name)
