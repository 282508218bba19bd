#!/usr/bin/env python
"""Write demo data for text matching into a folder: pairs with 0/1, pairs with grades, triples.

python tools/make_demo_matching.py runs/demo_matching_data
"""

import bootstrap  # noqa: F401

import sys
from pathlib import Path

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description="Write demo data for text matching: pairs, graded pairs, triples.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to write; new or empty")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other texts (default: 0)")
    options = parser.parse_args(argv)
    from tasks.common.errors import InputError
    from tasks.matching.demo_data import write_demo_data

    if options.folder.is_dir() and any(options.folder.iterdir()):
        raise InputError(f"{options.folder}: is not empty; give another FOLDER")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{options.folder}: cannot be made ({error.strerror}); give another FOLDER") from None
    for path in write_demo_data(options.folder, options.seed):
        print(f"{path}: {len(path.read_text(encoding='utf-8').splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
