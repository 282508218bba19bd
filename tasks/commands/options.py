"""Shared by the verbs: parsers, and the options for computing with a model."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import get_args, get_origin

from paddle_rope.machine import prepare_process
from paddle_rope.options import did_you_mean
from paddle_rope.tasks.common.errors import InputError, OneLineArgumentParser
from paddle_rope.tasks.common.process import check_device
from paddle_rope.tasks.ner.formats.source import ON_ERROR
from paddle_rope.tasks.recipes import PREDICTING, get_options, load, recipe_of_model

MODEL_DIR = "folder OUTPUT_DIR/model of a training run, or an exported model"
LABELED = "labeled file, of a format that paddle-rope convert --help lists"
READING = ("fields", "on_error")
READ = {  # how the value of an option is read, by the type of its field
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "X"},
    Sequence: {"type": lambda given: given.split(","), "metavar": "A,B"},
    os.PathLike: {"metavar": "FILE"},
    str: {},
    bool: {"action": "store_true", "default": None},
}


def new_parser(verb, description, **options):
    form = argparse.RawDescriptionHelpFormatter
    return OneLineArgumentParser(prog=f"paddle-rope {verb}", description=description, formatter_class=form, **options)


def whole(least):
    """The ``type`` of an argument that is a whole number, ``least`` or more."""

    def parse(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more, got {text}")
        return int(text)

    return parse


def choose(command, kind, argv, groups):
    """The first argument, a ``kind`` such as ``task``, and the others; prints help and exits if asked to. ``groups``
    maps titles in the help to a dict from each name to a line about it. Raises InputError if there is no first
    argument, or it is unknown."""
    choices = [name for group in groups.values() for name in group]
    if argv[:1] in (["-h"], ["--help"]):
        width = max(map(len, choices))
        print(f"usage: {command} {kind.upper()} ...")
        for title, group in groups.items():
            print(f"\n{title}:")
            print("\n".join(f"  {name:{width}}  {line}" for name, line in group.items()))
        print(f"\nMore: {command} {kind.upper()} --help")
        sys.exit(0)
    if not argv or argv[0].startswith("-"):
        raise InputError(f"{command}: no {kind}; take one of {', '.join(choices)}; see {command} --help")
    if argv[0] not in choices:
        suggestion = did_you_mean(argv[0], choices) or f"take one of {', '.join(choices)}."
        raise InputError(f"{command}: unknown {kind} {argv[0]!r}; {suggestion} See {command} --help")
    return argv[0], argv[1:]


def add_model_dirs(parser):
    """Add the argument ``model_dirs``: a model, or several NER models."""
    several = f"{MODEL_DIR}; the scores of several NER models are averaged"
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help=several)


def add_option(parser, field, meaning):
    """Add an option that a dataclass declares."""
    kind = (get_args(field.type) or (field.type,))[0]  # of the type or None
    default = f" (default: {field.default})" if field.default else ""
    read = {"default": field.default, **READ[get_origin(kind) or kind]}
    parser.add_argument(f"--{field.name}", help=meaning + default, **read)


def add_prediction(parser, recipes=PREDICTING, with_filter=False):
    """Add the options of the predictors of ``recipes``; ``with_filter`` also those that choose entities."""
    from paddle_rope.tasks.ner.arguments import FilterOptions

    declared, of_filter = {}, {*FilterOptions.names(), "dictionary", "patterns"}
    for recipe in recipes:
        for field in fields(get_options(recipe)):
            if with_filter or field.name not in of_filter:
                declared.setdefault(field.name, {})[recipe] = field
    for of_recipes in declared.values():
        having = {}  # meaning -> recipes
        for recipe, field in of_recipes.items():
            having.setdefault(field.metadata["help"], []).append(recipe)
        of_all = [meaning for meaning, names in having.items() if len(names) == len(recipes)]
        meanings = of_all or [f"{', '.join(names)}: {meaning}" for meaning, names in having.items()]
        add_option(parser, next(iter(of_recipes.values())), "; ".join(meanings))


def add_reading(parser, texts_only=False):
    """Add the options that say how labeled data, or texts only, are read; see :func:`reading`."""
    keys = "NER: keys of records with other names than usual: text=content,spans=marks,start=from,type=kind"
    parser.add_argument("--fields", metavar="MEANING=KEY,...", help=keys)
    if not texts_only:
        left_out = "NER: at a wrong annotation, stop (default), or skip all of them and count them by kind"
        parser.add_argument("--on_error", choices=ON_ERROR, help=left_out)


def reading(options):
    """The options of :func:`add_reading` that were given, as ``read_examples`` takes them."""
    return {name: given for name in READING if (given := getattr(options, name, None)) is not None}


def prediction_options(options):
    """The options of predictors that were given."""
    known = set().union(*(get_options(recipe).names() for recipe in PREDICTING))
    return {name: value for name, value in vars(options).items() if name in known and value is not None}


def recipe_of(model_dirs, options=None, recipes=PREDICTING):
    """The recipe name of the models on the command line. Raises InputError if a folder holds no model, its recipe is
    not among the ``recipes`` of the verb, or one of the ``options`` does not apply to it."""
    folder, recipe = model_dirs[0], recipe_of_model(model_dirs)
    if recipe not in recipes:
        raise InputError(f"{folder}: is a model of {recipe}; this works with models of {', '.join(recipes)}")
    check_device(getattr(options, "device", None))
    declared = {one: {*get_options(one).names(), *get_options(one).VERB_OPTIONS} for one in PREDICTING}
    for name, given in vars(options).items() if options else ():
        known = [one for one in PREDICTING if name in declared[one]]
        # an option that no recipe declares is the verb's own; 0 is given, though 0 == False
        if given is not None and given is not False and known and recipe not in known:
            raise InputError(f"--{name}: {folder} is a model of {recipe}, not of {' or '.join(known)}; leave it out")
    return recipe


def open_model(model_dirs, options):
    """The predictor of the models on the command line."""
    prepare_process()
    return load(model_dirs, show_progress=sys.stderr.isatty(), **prediction_options(options))
