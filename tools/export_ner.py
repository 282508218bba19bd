#!/usr/bin/env python
"""Export a trained NER model as a static graph for Paddle Inference, to deploy it.

The folder that it makes goes wherever a model's folder does, to predict_ner.py and evaluate_ner.py or to
tasks.ner.NerPredictor; several models become one whose scores are their mean. Without word features the graph needs
nothing of this project; its inputs and its output are in docs/ner.md.
"""

import os

os.environ.setdefault("GLOG_minloglevel", "2")  # Paddle's notes on what its own layers do in graphs

import bootstrap  # noqa: E402, F401

import argparse  # noqa: E402
import sys  # noqa: E402

from tasks.common.errors import OneLineArgumentParser, exit_on_input_error  # noqa: E402
from tasks.common.tool.prediction import add_model_dirs  # noqa: E402


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_dirs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder to make; must not exist or be empty")
    options = parser.parse_args(argv)
    from tasks.ner.deployment.export import export

    difference = export(options.model_dirs, options.output)
    print(f"{options.output}: exported; scores of three sentences differ from the model's by at most {difference:.1g}")
    print(f"predict:  python tools/predict_ner.py {options.output} --input FILE")
    return 0


if __name__ == "__main__":
    sys.exit(main())
