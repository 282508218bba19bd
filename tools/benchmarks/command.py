"""How the scripts of this folder read their options."""

import argparse
from pathlib import Path

from paddle_rope.tasks.common.errors import OneLineArgumentParser
from paddle_rope.tasks.common.files import check_output_file
from paddle_rope.tasks.common.process import prepare


def new_parser(description):
    """A parser with the option ``--output``."""
    form = argparse.RawDescriptionHelpFormatter
    parser = OneLineArgumentParser(description=description, formatter_class=form)
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON file to write, with all numbers")
    return parser


def parse(parser, argv):
    """The options in ``argv``, None for those of the process. After that, Paddle may be imported."""
    options = parser.parse_args(argv)
    if options.output is not None:
        check_output_file(options.output, [options.data] if "data" in options else [])
    prepare()
    return options
