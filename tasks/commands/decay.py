"""paddle-rope decay: the long-range decay of RoPE as figures."""

import math
from pathlib import Path

from tasks.commands.options import new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_makeable, write_files
from tasks.common.tool.process import prepare

DECAY = """\
Draw the long-range decay of RoPE: the bound of kexue.fm 8265 and the dot products of all-ones vectors.

Writes decay_bound.png and .csv (mean |S_j| against the relative distance) and decay_ones.png and .csv (<R_m q, R_n k>
with q = k = ones against the key position n) into a folder, each beside the counter-examples where all pairs have the
frequency 0 or 1, and prints a few lines on what the figures show."""
FILES = ("decay_bound.png", "decay_bound.csv", "decay_ones.png", "decay_ones.csv")
LIMITS = {"head_dim": (2, 4096), "max_distance": (1, 1_000_000), "query_position": (0, 10**9)}


def decay(words):
    parser = new_parser("decay", DECAY)
    parser.add_argument("--head_dim", type=int, default=128, help="size of a head, even (default: 128)")
    parser.add_argument("--base", type=float, default=10000.0, help="of theta_i = base^(-2i/head_dim) (default: 10000)")
    parser.add_argument("--max_distance", type=int, default=256, help="largest relative distance (default: 256)")
    parser.add_argument("--query_position", type=int, default=0, help="m of the all-ones figure (default: 0)")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where to write; made if missing")
    parser.add_argument("--overwrite", action="store_true", help="replace the files of an earlier call")
    options = parser.parse_args(words)
    check_options(options)
    prepare()
    from tasks.experiments.positions.decay import contents

    files, lines = contents(options)
    options.output.mkdir(parents=True, exist_ok=True)
    write_files(options.output, dict(zip(FILES, files)))
    print("\n".join(lines))
    print(f"written to {options.output}: {', '.join(FILES)}")
    return 0


def check_options(options):
    """Raise InputError for numbers that make no sense and for files that are there already. Makes nothing."""
    for name, (low, high) in LIMITS.items():
        value = getattr(options, name)
        if not low <= value <= high:
            raise InputError(f"--{name} {value}: must be from {low} to {high}")
    if options.head_dim % 2:
        raise InputError(f"--head_dim {options.head_dim}: must be even, features turn in pairs")
    if not 1 <= options.base < math.inf:
        raise InputError(f"--base {options.base:g}: must be a finite number, 1 or more")
    check_makeable(options.output, "--output")
    for name in FILES:
        path = options.output / name
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give another --output")
        if path.exists() and not options.overwrite:
            raise InputError(f"{path}: exists already; give another --output, or --overwrite to replace it")
