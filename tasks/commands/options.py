"""What the verbs share: parsers, the choice of a task, arguments that several of them have."""

import argparse
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, did_you_mean

MODEL_DIR = "folder OUTPUT_DIR/model of a training run"
LABELED = "labeled file, of a format that paddle-rope convert --help lists"


def new_parser(verb, *description, **options):
    """The parser of ``paddle-rope VERB``."""
    return OneLineArgumentParser(
        prog=f"paddle-rope {verb}",
        description="".join(description),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


def choose(command, kind, words, choices):
    """The first of ``words``, and the others. Prints help and exits, as argparse does, where that was asked for.

    Args:
        command: the words before them.
        kind: what the first one names, such as ``task``.
        words: of the command line.
        choices: dict from what the first may be to what it does, in a line.

    Raises:
        InputError: there is no first word, or it is unknown.
    """
    if words[:1] in (["-h"], ["--help"]):
        width = max(map(len, choices))
        print(f"usage: {command} {kind.upper()} ...\n")
        print("\n".join(f"  {name:{width}}  {line}" for name, line in choices.items()))
        print(f"\nMore: {command} {kind.upper()} --help")
        sys.exit(0)
    if not words or words[0].startswith("-"):
        raise InputError(f"{command}: no {kind}; take one of {', '.join(choices)}; see {command} --help")
    if words[0] not in choices:
        suggestion = did_you_mean(words[0], choices) or f"take one of {', '.join(choices)}."
        raise InputError(f"{command}: unknown {kind} {words[0]!r}; {suggestion} See {command} --help")
    return words[0], words[1:]


def add_model_dirs(parser):
    """The argument ``model_dirs``: models whose scores are averaged."""
    several = f"{MODEL_DIR}; the scores of several are averaged"
    parser.add_argument("model_dirs", metavar="MODEL_DIR", nargs="+", help=several)


def add_model_dir(parser):
    """The argument ``model_dir``."""
    parser.add_argument("model_dir", metavar="MODEL_DIR", help=MODEL_DIR)


# How long a text a model reads at once: name of the option, help.
LONGEST = {
    "ner": (
        "max_tokens",
        "tokens computed at once (default: what training covered); longer texts are read in windows",
    ),
    "matching": ("max_tokens", "tokens of a sequence, longer ones are cut (default: as trained)"),
    "classification": ("max_characters", "characters of a text, the rest is cut (default: as trained)"),
}


def add_computing(parser, task):
    """How a model computes: ``--max_tokens``, ``--max_entity_tokens`` or ``--max_characters``, ``--batch_size``,
    ``--device``, ``--bf16``."""
    longest, meaning = LONGEST[task]

    def refuse(value):
        raise InputError(f"--max_length is now --{longest}; write --{longest} {value}")

    parser.add_argument(f"--{longest}", type=int, help=meaning)
    parser.add_argument("--max_length", type=refuse, help=argparse.SUPPRESS)
    if task == "ner":
        bound = "tokens of the longest entity that is found, 0 for any (default: twice the longest one in training)"
        parser.add_argument("--max_entity_tokens", type=int, metavar="N", help=bound)
    parser.add_argument("--batch_size", type=int, default=32, help="texts computed together (default: 32)")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    add_bf16(parser)


def add_bf16(parser):
    """The argument ``bf16``."""
    faster = "multiply in bfloat16, where that is faster on the CPU; scores change a little (docs/performance.md)"
    # None, not False: plans of many documents leave it out then, as those before there was the option did
    parser.add_argument("--bf16", action="store_true", default=None, help=faster)


def computing(options):
    """The arguments of :func:`add_computing`, as predictors and recipes name them."""
    names = ("device", "batch_size", "max_tokens", "max_entity_tokens", "max_characters", "bf16")
    return {name: getattr(options, name) for name in names if hasattr(options, name)}
