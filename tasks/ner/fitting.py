"""The settings that a run with ``fit_to_data`` chooses by the size of its data and of its encoder. Few labels need many
steps in small batches and a pretrained encoder; many labels need more layers and few epochs. docs/guides/training.md
has the tables, what they were measured on, and what comes from published recipes."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from paddle_rope.roformer.checkpoints.reading import read_config
from paddle_rope.tasks.common.errors import as_input_error
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.features import FEATURE_KINDS

CHARACTERS = 40  # per text in TABLE: about the mean in CLUENER, People's Daily and Weibo
FEWEST_EPOCHS, MOST_EPOCHS = 3, 140
EPOCHS_ON_UNLABELED = 16  # of masked language modeling, if the training texts alone would get none
MOST_MASKED_STEPS = 3000  # with texts without labels, unless one epoch has more
FEWEST_STEPS = 300  # with fewer a model from scratch hardly begins to find entities
FEWEST_ENTITIES = 300  # in dev; with fewer, the best of many epochs is just the luckiest
PATIENCE = 1 / 3  # of the epochs: more than the quarter of the steps by which the averaged weights lag
LEAST_PATIENCE = 3  # epochs
FEW_TEXTS = 2_000  # a model trained on more labeled texts finds enough with threshold 0


class Row(NamedTuple):
    """Settings for training data of up to ``texts`` texts of ``CHARACTERS`` characters."""

    texts: float
    batch_size: int  # of texts of that length
    steps: int  # of the optimizer
    steps_from_folder: int  # if the encoder is pretrained
    num_hidden_layers: int
    masked_lm_epochs: int  # on the training texts
    hidden_dropout_prob: float
    embedding_dropout_prob: float
    character_dropout: float
    feature_dropout: float


TABLE = (
    Row(150, 8, 500, 1200, 1, 0, 0.1, 0.2, 0.5, 0.2),
    Row(600, 16, 2300, 560, 2, 0, 0.3, 0.5, 0.2, 0.5),
    Row(2_000, 16, 1500, 1500, 4, 16, 0.3, 0.5, 0.1, 0.3),
    Row(6_000, 16, 2000, 2000, 4, 10, 0.3, 0.5, 0.1, 0.3),
    Row(15_000, 32, 1800, 1800, 4, 6, 0.3, 0.5, 0.1, 0.3),
    Row(math.inf, 32, 2600, 2600, 4, 3, 0.3, 0.5, 0.1, 0.3),
)
WITH_FEATURES = {"features": list(FEATURE_KINDS)}
FROM_SCRATCH = {"learning_rate": 1e-3, "intermediate_size": 512, "hidden_act": "relu"}
# Linear attention with decay, convolutions and a gate, so nearness of tokens need not be learned from labels.
NEAR = {
    "attention": "linear",
    "normalizer": "none",
    "decay": "0.5,0.8,0.95,1",  # of four heads
    "convolutions": True,
    "output_gate": True,
}
# If one of these keys is given, no key of NEAR is chosen.
_OF_ATTENTION = {*NEAR, "attention_window", "feature_map", "position_embedding", "num_attention_heads"}
_OF_STEPS = ("max_steps", "num_train_epochs", "per_device_train_batch_size", "gradient_accumulation_steps")
# An encoder as small as ours, on which these were measured.
SMALL_WIDTH, SMALL_DEPTH = 256, 4
FROM_SMALL = {
    "learning_rate": 5e-4,
    "hidden_dropout_prob": 0.1,
    "embedding_dropout_prob": 0.3,
    "character_dropout": 0.1,
    "feature_dropout": 0.3,
}
# Learning rates of larger ones, by the greatest hidden size: as published for ELECTRA small (github.com/ymcui/
# Chinese-ELECTRA); twice the largest that PaddleNLP tried on CLUE, which suited most narrow models best; the middle of
# its range, and of BERT's; and its rate for models of 1,024. They have dropout 0.1 and no word features.
RATES = ((256, 3e-4), (511, 1e-4), (768, 3e-5), (math.inf, 2e-5))
FROM_LARGER = {"hidden_dropout_prob": 0.1, "features": None}
MOST_EPOCHS_OF_LARGER = 50  # as PaddleNLP gives CLUEWSC2020, the smallest data set of CLUE


class Fit(NamedTuple):
    """The chosen settings."""

    keys: dict[str, Any]  # configuration keys that were not given
    lines: list[str]  # that explain the choice
    steps: int  # of the optimizer, with the given keys taken into account


def fit_keys(
    given: dict[str, Any],
    examples: Sequence[Example],
    unlabeled: Sequence[Example] = (),
    processes: int = 1,
    accumulated: int = 1,
    dev: Sequence[Example] = (),
    window: int | None = None,
    distilled: Sequence[Example] = (),
) -> Fit:
    """Choose the configuration keys that are not ``given``, based on the labeled ``examples``, the ``unlabeled``
    texts, the ``dev`` examples used to choose an epoch and a threshold, and the examples of a teacher, ``distilled``.
    ``processes`` is how many train together, ``accumulated`` how many batches form an optimizer step; examples longer
    than ``window`` characters are cut. Raises InputError if the folder ``pretrained`` has no configuration."""
    labeled = sum(len(example.text) for example in examples) / CHARACTERS
    examples = [*examples, *distilled]
    size = max(1.0, sum(len(example.text) for example in examples) / CHARACTERS)
    texts = sum(math.ceil(len(example.text) / (window or math.inf)) or 1 for example in examples)
    row = next(row for row in TABLE if size <= row.texts)
    wanted, most_epochs = _of_the_model(row, given)
    if dev and labeled <= FEW_TEXTS and "tune_thresholds" not in given:
        wanted["threshold_for_f1"] = True
    entities = sum(len(example.entities) for example in dev)
    if dev and entities < FEWEST_ENTITIES and not given.get("early_stopping_patience"):
        wanted["keep_best"] = False
    # long texts get smaller batches, of about as many characters; rounded to a power of two
    power = round(math.log2(row.batch_size * texts / size))
    wanted["per_device_train_batch_size"] = min(row.batch_size, 2 ** max(0, power))
    batch_size = int(given.get("per_device_train_batch_size") or wanted["per_device_train_batch_size"])

    def batches(count):
        return math.ceil(math.ceil(count / processes) / batch_size)

    per_epoch = max(1, batches(texts) // accumulated)
    enough = row.steps_from_folder if given.get("pretrained") else row.steps
    wanted["num_train_epochs"] = min(most_epochs, max(FEWEST_EPOCHS, math.ceil(enough / per_epoch)))
    epochs = float(given.get("num_train_epochs") or wanted["num_train_epochs"])
    most = int(given.get("max_steps") or -1)
    steps = most if most > 0 else max(1, math.ceil(epochs * per_epoch))
    if dev and entities >= FEWEST_ENTITIES and "keep_best" not in given:
        planned = math.ceil(steps / per_epoch)
        wanted["early_stopping_patience"] = max(LEAST_PATIENCE, math.ceil(planned * PATIENCE))
    wanted["ema_decay"] = min(0.998, max(0.9, round(1 - 4 / steps, 3)))  # over a quarter of the steps
    if unlabeled:
        per_epoch = batches(texts + len(unlabeled))
        masked = wanted["masked_lm_epochs"] or EPOCHS_ON_UNLABELED
        wanted["masked_lm_epochs"] = max(1, min(masked, MOST_MASKED_STEPS // per_epoch))
    chosen = {key: value for key, value in wanted.items() if key not in given}
    return Fit(chosen, _lines(given, wanted, examples, unlabeled, entities, steps), steps)


def _of_the_model(row, given):
    """The settings that do not depend on batches, and the most epochs."""
    folder = given.get("pretrained")  # empty: from scratch
    if not folder:
        keys = [key for key in Row._fields if key.endswith(("_prob", "_dropout", "_layers", "_lm_epochs"))]
        near = {} if _OF_ATTENTION & set(given) else NEAR
        return {**FROM_SCRATCH, **near, **{key: getattr(row, key) for key in keys}, **WITH_FEATURES}, MOST_EPOCHS
    with as_input_error():
        encoder = read_config(folder)
    if encoder.hidden_size <= SMALL_WIDTH and encoder.num_hidden_layers <= SMALL_DEPTH:
        return {**FROM_SMALL, **WITH_FEATURES, "masked_lm_epochs": 0}, MOST_EPOCHS
    rate = next(rate for widest, rate in RATES if encoder.hidden_size <= widest)
    return {"learning_rate": rate, **FROM_LARGER, "masked_lm_epochs": 0}, MOST_EPOCHS_OF_LARGER


def _shown(value):
    return "none" if value is None else "+".join(value) if isinstance(value, list) else value


def _lines(given, wanted, examples, unlabeled, entities, steps):
    """The lines that say which settings were chosen, which were given, and whether the steps may be too few."""
    characters = sum(len(example.text) for example in examples)
    lines = [
        f"fit_to_data: {len(examples):,} training texts, {characters:,} characters, {len(unlabeled):,} without labels, "
        f"{entities:,} entities in dev: {steps:,} steps"
    ]
    for title, is_given in (("chosen", False), ("kept as given", True)):
        listed = [f"{key} {_shown(given.get(key, wanted[key]))}" for key in wanted if (key in given) == is_given]
        if listed:
            lines.append(f"  {title}: {', '.join(listed)}")
    if steps < FEWEST_STEPS:
        set_here = [key for key in _OF_STEPS if key in given]
        remedy = f"Leave out {' and '.join(set_here)}, or give more epochs" if set_here else "Give more texts"
        lines.append(
            f"note: {steps} optimizer steps are few; with less than about {FEWEST_STEPS} nothing may be found. {remedy}"
        )
    return lines
