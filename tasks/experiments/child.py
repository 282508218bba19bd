"""What the process does that :mod:`tasks.experiments.apart` starts: one training run or one measurement."""

import json
import sys

from tasks.common.cli.streams import on_terminal
from tasks.common.process import prepare
from tasks.experiments.apart import BUSY


@on_terminal
def main(argv=None):
    (job,) = sys.argv[1:] if argv is None else argv
    given = json.load(sys.stdin)
    prepare()
    if job == "measure":
        from tasks.experiments.benchmarks.models import measure

        print(json.dumps(measure(**given)))
        return 0
    if job == "document":
        from tasks.experiments.benchmarks.long_document import measure_document

        print(json.dumps(measure_document(**given)))
        return 0
    from tasks.common.training.series import train_unless_finished
    from tasks.recipes import get_recipe

    return 0 if train_unless_finished(get_recipe(given["recipe"]), given["config"]) else BUSY


if __name__ == "__main__":
    sys.exit(main())
