"""Attack one reader with mutants that are guided by the code they reach (atheris: pip install --group fuzz).

    python -m tests.attack.coverage cluener --minutes 2 --seed 1
    python -m tests.attack.coverage torch_pickle --runs 100000

Works for targets of one file. The process ends at the first finding, which is written to --findings; start it again,
with another seed, to go on. Exit status 1 if there was one. libFuzzer limits memory and time, and keeps what exceeds
them in a folder that it names.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from tests.attack.attack import REGRESSIONS, keep, signature
from tests.attack.targets import QUICK, TARGETS, write_case
from tests.attack.watchdog import read_once

MISSING = "SKIPPED: atheris is not installed; pip install --group fuzz"
READERS = [
    *("tasks.ner.formats", "tasks.common.texts", "tasks.matching.data", "tasks.classification.data"),
    "paddle_rope.roformer.checkpoints.tensor_files",
    "paddle_rope.roformer.checkpoints.pickled_tensors",
]
LARGEST = 20_000  # bytes of a mutant
OURS_IN_TEN = 5  # of ten mutants, those of the structure-aware mutators; the others are libFuzzer's


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.attack.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=QUICK)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=-1, help="mutants at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=REGRESSIONS)
    options = parser.parse_args(argv)
    try:
        import atheris
    except ImportError:
        print(MISSING)
        return 0
    with atheris.instrument_imports(include=READERS):
        target = TARGETS[options.format]()
    samples = target.samples()
    if len(samples[0]) > 1:
        parser.error(f"{options.format} has several files")
    return _fuzz(atheris, target, samples, options)


def _fuzz(atheris, target, samples, options):
    (name,) = samples[0]
    place = Path(tempfile.mkdtemp(prefix="attack-coverage-"))
    corpus, folder = place / "corpus", place / "mutant"
    corpus.mkdir()
    folder.mkdir()
    for number, sample in enumerate(samples):
        (corpus / str(number)).write_bytes(sample[name])

    def read(content):
        case = {name: content}
        write_case(folder, case)
        outcome = read_once(target, folder)
        if not outcome.passed:
            wanted = signature(outcome)
            print(f"{wanted}\n{outcome.detail}\n{keep(target.name, wanted, case, options.findings)}", flush=True)
            os._exit(1)

    def mutate(content, size, seed):
        rng = random.Random(seed)
        if rng.randrange(10) >= OURS_IN_TEN:
            return atheris.Mutate(content, size)
        return target.mutate({name: content}, rng)[name][:size]

    words = [
        *(sys.argv[0], str(corpus), f"-seed={options.seed}", f"-runs={options.runs}", f"-max_len={LARGEST}"),
        *(f"-max_total_time={int(options.minutes * 60)}", "-timeout=5", "-rss_limit_mb=3000", "-malloc_limit_mb=1024"),
        f"-artifact_prefix={place}/",
    ]
    atheris.Setup(words, read, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
