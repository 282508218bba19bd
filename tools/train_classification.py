#!/usr/bin/env python
"""Train a classifier of documents.

    python tools/train_classification.py CONFIG.yaml [--key value ...]
    python tools/train_classification.py CONFIG.yaml --seeds 42,43,44 [--key value ...]
    python tools/train_classification.py --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys of tasks/classification/arguments.py and tasks/common/training/arguments.py
(train_file,
dev_file, test_file, attention, max_characters, pooling ...) and of PaddleNLP's TrainingArguments (output_dir,
num_train_epochs, learning_rate, seed, device, bf16 ...). Data: JSON lines with text or sentence, label and label_des,
or text<TAB>label.
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores.
--resume goes on with a run, or a series of seeds, that was interrupted, to the result that it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch tools/train_classification.py CONFIG.yaml ...
"""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import exit_on_input_error
from tasks.common.tool.training import run_training_tool


@exit_on_input_error
def main(argv=None):
    return run_training_tool("classification", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
