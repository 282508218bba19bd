"""Shared by the verbs: parsers, and the options for computing with a model."""

import argparse
import sys

from paddle_rope.tasks.common.errors import InputError, OneLineArgumentParser, did_you_mean
from paddle_rope.tasks.common.process import check_device
from paddle_rope.tasks.recipes import PREDICTING, recipe_of_model

MODEL_DIR = "folder OUTPUT_DIR/model of a training run, or an exported model"
LABELED = "labeled file, of a format that paddle-rope convert --help lists"
COMPUTING = ("device", "batch_size", "max_tokens", "max_entity_tokens", "max_characters", "bf16", "overlap")
# Options that not all recipes have.
WANTED = ("dictionary", "patterns", "types", "min_probability", "top_k", "consistent")
RECIPES_OF = {
    **dict.fromkeys(("max_entity_tokens", "overlap", "format", "html", "whole_files", "examples"), ("ner",)),
    **dict.fromkeys(WANTED, ("ner",)),
    "max_tokens": ("ner", "matching"),
    "max_characters": ("classification",),
    "embed": ("matching",),
    "text_column": ("ner", "classification"),
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


def choose(command, kind, argv, choices):
    """The first argument, a ``kind`` such as ``task``, and the others; prints help and exits if asked to.
    ``choices`` maps each name to a line about it. Raises InputError if there is no first argument, or it is unknown."""
    if argv[:1] in (["-h"], ["--help"]):
        width = max(map(len, choices))
        print(f"usage: {command} {kind.upper()} ...\n")
        print("\n".join(f"  {name:{width}}  {line}" for name, line in choices.items()))
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


def add_computing(parser):
    max_tokens = "NER and matching: tokens computed at once (default: as trained); NER reads longer texts in windows, "
    max_characters = "classification: the rest of a text is cut (default: as trained)"
    entity = "NER: tokens of the longest entity that is found, 0 for any (default: twice the longest one in training)"
    parser.add_argument("--max_tokens", type=int, metavar="N", help=max_tokens + "matching cuts them")
    parser.add_argument("--max_characters", type=int, metavar="N", help=max_characters)
    parser.add_argument("--max_entity_tokens", type=int, metavar="N", help=entity)
    parser.add_argument("--batch_size", type=int, default=32, metavar="N", help="texts computed together (default: 32)")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    add_bf16(parser)


def add_bf16(parser):
    faster = (
        "multiply in bfloat16, where that is faster on the CPU; scores change a little (docs/guides/performance.md)"
    )
    parser.add_argument("--bf16", action="store_true", default=None, help=faster)


def computing(options):
    """The options of :func:`add_computing` and :func:`add_wanted` that were given, as predictors take them."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    wanted = {name: given[name] for name in WANTED if name in given}
    return {name: given[name] for name in COMPUTING if name in given} | ({"wanted": wanted} if wanted else {})


def add_wanted(parser):
    """Add the options that control which entities a NER model finds."""
    parser.add_argument(
        "--dictionary", metavar="FILE", help="terms to find: lines of term<TAB>type, or term<TAB>type<TAB>hint"
    )
    parser.add_argument("--patterns", metavar="FILE", help="YAML file of types with regular expressions to find")
    parser.add_argument("--types", type=lambda given: given.split(","), metavar="A,B", help="find these types only")
    parser.add_argument("--min_probability", type=float, metavar="P", help="find what is at least so probable")
    parser.add_argument("--top_k", type=int, metavar="K", help="find the K most probable entities of a text")
    everywhere = "a string is an entity at all of its places in a text, or at none, as at most of them"
    parser.add_argument("--consistent", action="store_true", default=None, help=everywhere)


def recipe_of(model_dirs, options=None, recipes=PREDICTING):
    """The recipe name of the models on the command line. Raises InputError if a folder holds no model, its recipe is
    not among the ``recipes`` of the verb, or one of the ``options`` does not apply to it."""
    folder = model_dirs[0]
    recipe = recipe_of_model(folder)
    if recipe not in recipes:
        raise InputError(f"{folder}: is a model of {recipe}; this works with models of {', '.join(recipes)}")
    if recipe != "ner" and len(model_dirs) > 1:
        raise InputError(f"{folder}: is a model of {recipe}; only NER models compute together, so give one")
    check_device(getattr(options, "device", None))
    for name, known in RECIPES_OF.items():
        given = getattr(options, name, None)
        if given is not None and given is not False and recipe not in known:  # 0 is given, though 0 == False
            raise InputError(f"--{name}: {folder} is a model of {recipe}, not of {' or '.join(known)}; leave it out")
    return recipe
