"""Ways to fine-tune the small encoder on 300 labeled texts: F1 on 1,500 other texts of CLUENER's training file.

    python tools/dev/shipped_encoder.py split data/ner/cluener/train.json runs
    python -m tasks.experiments.fine_tuning WAY SEED

Results: docs/results/pretraining.md.
"""

import json
import re
import sys

from paddlenlp.trainer import TrainerCallback

from tasks.common.training.trainer import RecipeTrainer
from tasks.recipes import get_recipe

FROZEN = 0.1  # of the steps
OF_THE_LAYER_ABOVE = 0.8
WAYS = {
    "own_data": {},
    "warm-up": {"warmup_ratio": 0.1},
    "layer-wise": {},
    "frozen": {},
    "dropout": {"hidden_dropout_prob": 0.3},
    "masked": {"masked_lm_epochs": 16},
}


class Freeze(TrainerCallback):
    """Trains only the head during the first steps."""

    def __init__(self, parameters):
        self.parameters = parameters

    def on_step_begin(self, args, state, control, **kwargs):
        for parameter in self.parameters:
            parameter.optimize_attr["learning_rate"] = float(state.global_step >= FROZEN * state.max_steps)


def share_of_rate(name, layers):
    """The embeddings learn more slowly than the first layer, and so on up to the head."""
    if not name.startswith("roformer."):
        return 1.0
    layer = re.search(r"blocks\.(\d+)\.", name)
    return OF_THE_LAYER_ABOVE ** (layers - (int(layer[1]) if layer else -1))


def prepare(way):
    create = RecipeTrainer.create_optimizer

    def create_optimizer(self, *arguments):
        named = list(self.model.named_parameters())
        if way == "layer-wise":
            for name, parameter in named:
                parameter.optimize_attr["learning_rate"] = share_of_rate(name, self.model.config.num_hidden_layers)
        elif way == "frozen":
            self.add_callback(Freeze([parameter for name, parameter in named if name.startswith("roformer.")]))
        return create(self, *arguments)

    RecipeTrainer.create_optimizer = create_optimizer


if __name__ == "__main__":
    way, seed = sys.argv[1], int(sys.argv[2])
    prepare(way)
    config = {
        "pretrained": "small", "fit_to_data": True, "max_characters": 512,
        "features": ["segmentation", "bigrams", "words", "dictionary", "gazetteer"],
        "train_file": "runs/rest.json", "test_file": "runs/held.json", "train_texts": 300, "dev_split": "random",
        "seed": seed, "output_dir": f"runs/fine_tuning/{way}-{seed}",
    }  # fmt: skip
    metrics = get_recipe("ner").train({**config, **WAYS[way]})
    scores = {"test": metrics["test"]["f1"], "dev": metrics["dev"]["f1"], "seconds": metrics["train_seconds"]}
    print(way, seed, json.dumps(scores), flush=True)
