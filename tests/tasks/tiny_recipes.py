"""The smallest run of each recipe: keys, data, and what equal runs leave."""

import json

import numpy as np

from paddle_rope.tasks.matching.demo import write_demo_data
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.recipes import RECIPES
from paddle_rope.tasks.relations.demo import write_demo

ENCODER = {
    **{"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2},
    **{"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
    **{"learning_rate": 1e-2, "logging_steps": 2, "device": "cpu"},
}
EPOCHS = {**ENCODER, "num_train_epochs": 2, "per_device_train_batch_size": 8}
KEYS = {
    "ner": {
        **EPOCHS, "head_size": 8, "ema_decay": 0.8, "character_dropout": 0.1,
        "features": "segmentation,bigrams,words,dictionary,gazetteer",
    },
    "relations": {**EPOCHS, "head_size": 8, "ema_decay": 0.8},
    "matching": {**EPOCHS, "max_tokens": 40, "ema_decay": 0.8},
    "classification": {**EPOCHS, "max_characters": 32, "ema_decay": 0.8},
    "pretraining": {
        **ENCODER, "stages": "24x4x5,12x4x4", "dev_fraction": 0.2, "vocab_min_count": 1, "save_steps": 3,
        "gradient_accumulation_steps": 2, "first_hidden_share": 0.4,
    },
    "language_model": {
        **ENCODER, "length": 8, "held_out_windows": 2, "vocab_min_count": 1, "max_steps": 9, "eval_steps": 4,
        "per_device_train_batch_size": 4, "warmup_steps": 2, "gradient_accumulation_steps": 2,
        "evaluation_times": "1,4", "rotary": {"learned": True},
    },
}  # fmt: skip
ENDS = {"ner": 6, "relations": 6, "matching": 6, "classification": 6, "pretraining": 9, "language_model": 9}
WITH_LABELS = [name for name, recipe in RECIPES.items() if recipe.predictor]


def write_data(folder):
    """Write the data of all recipes into ``folder``: dict from a recipe to keys that name files."""
    train, dev = write_demo_corpus(folder, train_size=24, dev_size=8)
    of_matching = {path.stem: path.read_text(encoding="utf-8") for path in write_demo_data(folder)}
    pairs, triples = (of_matching[name].splitlines(keepends=True) for name in ("pairs_train", "triples"))
    triples = [line.replace("}", f', "label": "{"BC"[number % 2]}"}}') for number, line in enumerate(triples)]
    texts = [{"text": f"第{number}场{kind}很好", "label": kind} for number in range(16) for kind in ("球赛", "电影")]
    lines = [json.dumps(text, ensure_ascii=False) + "\n" for text in texts]
    plain = [json.loads(line)["text"] + "\n" for line in train.read_text(encoding="utf-8").splitlines()]
    files = {
        "matching_train": pairs[:24], "matching_dev": pairs[24:60], "triples": triples[:24],
        "classification_train": lines[:24], "classification_dev": lines[24:],
        "plain.txt": plain,
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_text("".join(content), encoding="utf-8")
    ner, plain = {"train_file": str(train), "dev_file": str(dev)}, {"text_files": str(folder / "plain.txt")}
    labeled = {
        name: {f"{split}_file": str(folder / f"{name}_{split}") for split in ("train", "dev")}
        for name in ("matching", "classification")
    }
    (folder / "relations").mkdir()
    write_demo(folder / "relations", {"train": 24, "dev": 8})
    relations = {f"{split}_file": str(folder / "relations" / f"{split}.jsonl") for split in ("train", "dev")}
    of_recipes = {"ner": ner, "relations": relations, "pretraining": plain, "language_model": plain}
    labeled["triples"] = dict.fromkeys(("train_file", "dev_file"), str(folder / "triples"))
    return {**of_recipes, **labeled}


def left_by(folder):
    """What a run has left that an equal run leaves as well: dict from names to content, without times."""
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    found = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    for name in ("predictions_dev.jsonl", "epochs.csv", "inputs.json"):
        if (folder / name).exists():
            found[name] = (folder / name).read_bytes()
    return {**found, "metrics.json": without_times(metrics)}


def without_times(value):
    if isinstance(value, dict):
        kept = [name for name in value if "second" not in name and "minute" not in name]
        return {name: without_times(value[name]) for name in kept}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def weights(folder):
    """The arrays of a run's model, as one vector."""
    from safetensors.numpy import load_file

    return np.concatenate([array.ravel() for array in load_file(folder / "model" / "model.safetensors").values()])
