#!/usr/bin/env python
"""Tune the thresholds of a trained NER model, one for each type, for the micro F1 on labelled data.

Writes them into the config.json of the model, where prediction and evaluation find them. Tune on dev data, not on the
data that you report. Tuning again starts from 0.
"""

import bootstrap  # noqa: F401

import argparse
import sys

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_dir", metavar="MODEL_DIR", help="folder OUTPUT_DIR/model of a training run")
    parser.add_argument("data", metavar="DEV_FILE", help="labelled file, of a format that convert_data.py --help lists")
    parser.add_argument("--max_tokens", type=int, help="tokens computed at once (default: as trained)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    options = parser.parse_args(argv)
    from tasks.ner.deployment.tuning import tune_model

    tune_model(options.model_dir, options.data, options.device, options.batch_size, options.max_tokens)
    return 0


if __name__ == "__main__":
    sys.exit(main())
