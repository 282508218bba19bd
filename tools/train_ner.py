#!/usr/bin/env python
"""Train a NER model.

    python tools/train_ner.py CONFIG.yaml [--key value ...]

CONFIG.yaml and --key take the keys of tasks/ner/recipe.py (train_file, dev_file, test_file, attention, max_length ...)
and of PaddleNLP's TrainingArguments (output_dir, num_train_epochs, learning_rate, seed, device ...).
"""

import bootstrap  # noqa: F401

import sys

from tasks.common.errors import InputError, exit_on_input_error


@exit_on_input_error
def main(argv=None):
    words = sys.argv[1:] if argv is None else list(argv)
    if words and words[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if not words or words[0].startswith("--"):
        raise InputError("no configuration file; usage: python tools/train_ner.py CONFIG.yaml [--key value ...]")
    from tasks.common.run_config import read_run_config
    from tasks.ner import recipe

    recipe.train(read_run_config(words[0], words[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
