#!/usr/bin/env python
"""Train a NER model.

    python tools/train_ner.py CONFIG.yaml [--key value ...]
    python tools/train_ner.py CONFIG.yaml --seeds 42,43,44 [--key value ...]
    python tools/train_ner.py --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys of tasks/ner/arguments.py (train_file, dev_file, test_file, attention, max_length
...) and of PaddleNLP's TrainingArguments (output_dir, num_train_epochs, learning_rate, seed, device, bf16 ...).
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores.
--resume goes on with a run that was interrupted, to the result that it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch tools/train_ner.py CONFIG.yaml ...
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
    if words[:1] == ["--resume"]:
        if len(words) != 2:
            raise InputError("usage: python tools/train_ner.py --resume OUTPUT_DIR; the run keeps its configuration")
        from tasks.ner import recipe

        recipe.resume(words[1])
        return 0
    if not words or words[0].startswith("--"):
        raise InputError("no configuration file; usage: python tools/train_ner.py CONFIG.yaml [--key value ...]")
    from tasks.common.run_config import read_run_config
    from tasks.common.seeds import parse_seeds, train_with_seeds
    from tasks.ner import recipe

    config = read_run_config(words[0], words[1:])
    if "seeds" in config:
        train_with_seeds(recipe.train, config, parse_seeds(config.pop("seeds")), recipe.FIGURES)
    else:
        recipe.train(config)
    return 0


if __name__ == "__main__":
    sys.exit(main())
