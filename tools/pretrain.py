#!/usr/bin/env python
"""Pretrain a RoFormer as a masked language model.

    python tools/pretrain.py CONFIG.yaml [--key value ...]
    python tools/pretrain.py CONFIG.yaml --seeds 42,43,44 [--key value ...]
    python tools/pretrain.py --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys of tasks/pretraining/arguments.py and tasks/common/training/arguments.py
(text_files, stages,
tokenizer, pretrained, attention ...) and of PaddleNLP's TrainingArguments (output_dir, learning_rate, save_steps, seed,
device, bf16 ...).
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores.
--resume goes on with a run that was interrupted, within a stage or between two, to the result it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch tools/pretrain.py CONFIG.yaml ...
OUTPUT_DIR/model is then what other tools take as --pretrained.
"""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import exit_on_input_error
from tasks.common.tool.training import run_training_tool


@exit_on_input_error
def main(argv=None):
    return run_training_tool("pretraining", __doc__, argv)


if __name__ == "__main__":
    sys.exit(main())
