"""Training of the controlled task: a small encoder that has to tell a relative position."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
import paddle
from paddle.io import Dataset
from tqdm import tqdm

from paddle_rope.roformer import RoFormerConfig, RoFormerForSequenceClassification
from tasks.common.errors import InputError
from tasks.common.files import write_json
from tasks.common.runs import life as runs
from tasks.common.tool.device import is_first_process
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.trainer import RecipeTrainer
from tasks.experiments.relative_position.arguments import resolve_config
from tasks.experiments.relative_position.data import LABELS, VOCABULARY, make_sequences

FIGURES = ("accuracy",)
# The sequences of each split are drawn with this seed plus three times that of the run.
SPLIT_SEEDS = {"train": 0, "dev": 1, "test": 2}


class SequenceDataset(Dataset):
    """Sequences of :func:`make_sequences`."""

    def __init__(self, ids, labels):
        super().__init__()
        self.ids, self.labels = ids, labels

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return self.ids[index], self.labels[index]


def collate(pairs):
    """dict of arrays: ``input_ids`` int64, ``attention_mask`` bool ``[batch, seq]``, ``labels`` int64 ``[batch]``."""
    ids, labels = (np.stack(arrays) for arrays in zip(*pairs))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids, dtype=bool), "labels": labels}


class RelativePositionTrainer(RecipeTrainer):
    """Accuracy on the dev sequences as its evaluation."""

    def score_dev(self):
        value = accuracy(self.model, self.eval_dataset, self.args.per_device_eval_batch_size)
        if self.is_world_process_zero():
            tqdm.write(f"epoch {self.state.epoch:4.1f}  dev accuracy {value:.4f}")
        return {"accuracy": value}


def accuracy(model, dataset, batch_size):
    """Share of the sequences of a :class:`SequenceDataset` whose label the model finds."""
    was_training, right = model.training, 0
    model.eval()
    with paddle.no_grad():
        for start in range(0, len(dataset), batch_size):
            logits = model(paddle.to_tensor(dataset.ids[start : start + batch_size]))
            right += int((logits.numpy().argmax(axis=1) == dataset.labels[start : start + batch_size]).sum())
    if was_training:
        model.train()
    return right / len(dataset)


def _train(checkpoint, config, run, arguments):
    datasets = {}
    for name, seed in SPLIT_SEEDS.items():
        size = run.train_size if name == "train" else run.test_size
        datasets[name] = SequenceDataset(*make_sequences(run.length, size, 3 * arguments.seed + seed))
    try:
        model = RoFormerForSequenceClassification(
            RoFormerConfig(vocab_size=VOCABULARY, pooling="mean", num_labels=LABELS, **run.encoder_options())
        )
    except ValueError as error:
        raise InputError(f"configuration: {error}") from None
    parameters = sum(int(p.size) for p in model.parameters())
    output_dir = Path(config["output_dir"])
    if is_first_process():
        print(f"{run.length} tokens: {model.config.attention} attention, {parameters:,} parameters")
        runs.claim(config, checkpoint)
    trainer = RelativePositionTrainer(
        VisualDLMonitor(arguments.logging_dir, config, FIGURES, run.log_histograms),
        lengths=[run.length] * run.train_size,
        ema_decay=run.ema_decay,
        patience=run.early_stopping_patience,
        model=model,
        args=arguments,
        train_dataset=datasets["train"],
        eval_dataset=datasets["dev"],
        data_collator=collate,
    )
    started = time.perf_counter()
    trainer.train(checkpoint)
    train_seconds = time.perf_counter() - started
    if not is_first_process():
        return None
    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": arguments.seed}
    for name in ("dev", "test"):
        value = accuracy(model, datasets[name], arguments.per_device_eval_batch_size)
        metrics[name] = {"accuracy": value, "chance": 1 / LABELS}
    print(f"test accuracy {metrics['test']['accuracy']:.4f}, chance {metrics['test']['chance']:.4f}")
    runs.save_model(output_dir, model)
    write_json(output_dir / runs.METRICS_FILE, metrics)
    return metrics


train = partial(runs.start, resolve_config, _train)
resume = partial(runs.resume, resolve_config, _train)
