#!/usr/bin/env python
"""Look at labelled NER data before training: counts, lengths, balance of types, duplicates, suspicious spans.

    python tools/inspect_data.py train.json dev.json

Every example has its file:line. What is found is for you to judge: the exit status is 0 whatever it is.
"""

import bootstrap  # noqa: F401

import argparse
import sys

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error

SPLITS = ("train", "dev", "test")


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", metavar="TRAIN", help="labelled file of a format that convert_data.py --help lists")
    parser.add_argument("dev", metavar="DEV", nargs="?", help="labelled file to compare with TRAIN")
    parser.add_argument("test", metavar="TEST", nargs="?", help="labelled file to compare with both")
    parser.add_argument("--format", metavar="FORMAT", help="format of all the files (default: recognised)")
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="examples of each finding (default: 5)")
    parser.add_argument("--output", metavar="FILE", help="write the result to FILE as JSON")
    options = parser.parse_args(argv)
    if options.examples < 0:
        raise InputError(f"--examples {options.examples}: must be 0 or more")
    from tasks.common.files import check_output_file, write_json
    from tasks.ner.data.inspection import inspect
    from tasks.ner.data.reading import read_labelled
    from tasks.ner.reports.inspection import print_inspection

    files = {split: getattr(options, split) for split in SPLITS if getattr(options, split) is not None}
    if options.output:
        check_output_file(options.output, files.values())
    read = {split: read_labelled(path, options.format) for split, path in files.items()}
    result = inspect({split: examples for split, (examples, _) in read.items()}, options.examples)
    for split, (_, format) in read.items():
        result["splits"][split] = {"file": files[split], "format": format, **result["splits"][split]}
    print_inspection(result)
    if options.output:
        write_json(options.output, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
