#!/usr/bin/env python
"""Download a public NER data set to where configs/ner/ expects it: OUTPUT/ner/NAME/.

    python tools/download_data.py cluener

An interrupted download continues when run again; files that are there are checked and kept. Where the network
is closed, the message says which address to fetch by hand and where to put it. The READMEs of the publishers state no
licence: ask them before any use but research.
"""

import bootstrap  # noqa: F401

import argparse
import sys
from pathlib import Path

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error

INTERRUPTED = 130  # as shells report it


@exit_on_input_error
def main(argv=None):
    from tasks.ner.data.published import DATASETS, fetch_dataset

    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", choices=DATASETS, help=", ".join(DATASETS))
    parser.add_argument("--output", type=Path, default=Path("data"), metavar="OUTPUT", help="folder (default: data)")
    options = parser.parse_args(argv)
    try:
        fetch_dataset(DATASETS[options.name], options.output / "ner" / options.name, show_progress=sys.stderr.isatty())
    except KeyboardInterrupt:
        print("interrupted; run again to go on where it stopped", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
