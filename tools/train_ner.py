#!/usr/bin/env python
"""Train a NER model.

    python tools/train_ner.py CONFIG.yaml [--key value ...]
    python tools/train_ner.py CONFIG.yaml --seeds 42,43,44 [--key value ...]
    python tools/train_ner.py --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys of the recipe and of PaddleNLP (docs/ner.md).
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores, and the scores of
all models as one.
--resume goes on with a run, or a series of seeds, that was interrupted, to the result that it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch tools/train_ner.py CONFIG.yaml ...
"""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import exit_on_input_error
from tasks.common.tool.training import run_training_tool


@exit_on_input_error
def main(argv=None):
    return run_training_tool("ner", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
