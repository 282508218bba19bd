#!/usr/bin/env python
"""Convert labelled NER data from one format to another.

    python tools/convert_data.py train.json train.bio --to bio

The format of SOURCE is recognised by its content. TARGET appears only when all of it is written; a file of that name
is replaced, a folder is not.
"""

import bootstrap  # noqa: F401

import argparse
import os
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.ner.data.reading import FORMATS, STDIN, read_labelled, write_examples
from tasks.ner.formats import TEXT_FORMATS
from tasks.ner.formats.brat import is_brat


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(
        description=__doc__, epilog=describe_formats(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", metavar="SOURCE", help="labelled file, or folder of brat; - is standard input")
    parser.add_argument("target", metavar="TARGET", help="file to write, or folder for brat; - is standard output")
    parser.add_argument("--to", required=True, choices=FORMATS, metavar="FORMAT", help="format of TARGET")
    parser.add_argument(
        "--from", dest="source_format", choices=FORMATS, metavar="FORMAT", help="format of SOURCE (default: recognised)"
    )
    options = parser.parse_args(argv)
    to_stdout = options.target == STDIN
    if not to_stdout and belongs_to(options.source, options.target):
        raise InputError(f"{options.target}: is the source too; give another TARGET")
    examples, source_format = read_labelled(options.source, options.source_format)
    if to_stdout:
        print_examples(examples, options.to)
    else:
        write_examples(examples, options.target, options.to)
    entities = sum(len(example.entities) for example in examples)
    print(
        f"{options.source} ({source_format}) -> {options.target} ({options.to}): "
        f"{len(examples)} texts, {sum(len(example.text) for example in examples)} characters, {entities} entities",
        file=sys.stderr if to_stdout else sys.stdout,
    )
    return 0


def belongs_to(source, target):
    """Whether writing ``target`` would change ``source``: the same path, a file in its folder, the other of a pair."""
    source, target = os.path.realpath(source), os.path.realpath(target)
    pair = is_brat(source) and os.path.splitext(source)[0] == os.path.splitext(target)[0]
    return source in (target, os.path.dirname(target)) or (pair and target.endswith((".ann", ".txt")))


def describe_formats():
    """The formats as lines of the help."""
    samples = {name: text_format.sample for name, text_format in TEXT_FORMATS.items()}
    samples["brat"] = "a folder with a text x.txt and its annotation x.ann for each document"
    return "formats:\n" + "\n".join(f"  {name:17} {sample}" for name, sample in samples.items())


def print_examples(examples, to):
    """Write to standard output in UTF-8, whatever the locale; silent when the reader, such as ``head``, has left."""
    if hasattr(sys.stdout, "reconfigure"):  # not where it is replaced by a stream of text
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        write_examples(examples, sys.stdout, to)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


if __name__ == "__main__":
    sys.exit(main())
