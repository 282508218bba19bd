#!/usr/bin/env python
"""Train a model of text matching: pairs of texts with 0/1 or a grade, or triples (which of two is closer to a third).

    python tools/train_matching.py CONFIG.yaml [--key value ...]
    python tools/train_matching.py CONFIG.yaml --seeds 42,43,44 [--key value ...]
    python tools/train_matching.py CONFIG.yaml --folds 5 [--key value ...]
    python tools/train_matching.py --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys of tasks/matching/arguments.py and tasks/common/training/arguments.py
(train_file, dev_file,
test_file, architecture, attention, max_tokens ...) and of PaddleNLP's TrainingArguments (output_dir, num_train_epochs,
learning_rate, seed, device, bf16 ...).
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores.
--folds cuts train_file into folds by the first text (A of triples), trains once for each, into OUTPUT_DIR/fold_N, tests
on it, and prints mean and spread. With --seeds the folds are drawn anew for each seed.
--resume goes on with a run, or a series of folds or seeds, that was interrupted, to the result that it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch tools/train_matching.py CONFIG.yaml ...
"""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import exit_on_input_error
from tasks.common.tool.training import run_training_tool


@exit_on_input_error
def main(argv=None):
    return run_training_tool("matching", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
