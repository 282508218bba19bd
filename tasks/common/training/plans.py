"""What recipes make of PaddleNLP's ``TrainingArguments``: by epochs or by steps."""

from __future__ import annotations

from typing import Any, NamedTuple


class TrainingPlan(NamedTuple):
    """What a recipe makes of PaddleNLP's ``TrainingArguments``."""

    defaults: dict[str, Any]  # its own defaults; a configuration may set others
    fixed: dict[str, Any]  # what it relies on
    closed: tuple[str, ...]  # keys that cannot be set, in addition to those that are fixed
    reason: str  # why

    def is_closed(self, key: str) -> bool:
        """Whether a configuration cannot set a key."""
        return key in self.fixed or key in self.closed


NOT_EVALUATED = {"do_eval": False, "evaluation_strategy": "no"}  # otherwise PaddleNLP evaluates in between
# Keys that the recipes set themselves, or that have no effect in them.
_CLOSED = ("metric_for_best_model", "logging_dir", "resume_from_checkpoint", "dataloader_drop_last")
# One evaluation and one checkpoint an epoch, the best one kept.
BY_EPOCHS = TrainingPlan(
    defaults={},
    fixed={
        "do_train": True,
        "do_eval": True,
        "evaluation_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "greater_is_better": True,
        "save_total_limit": 1,
        "report_to": "none",
    },
    closed=(*_CLOSED, "eval_steps", "save_steps"),
    reason="the recipe evaluates each epoch and keeps the best by dev {metric}, or the last with keep_best false",
)
# The recipe's own trainer evaluates, and the last weights are kept.
FIXED_BY_STEPS = {
    "do_train": True,
    **NOT_EVALUATED,
    "save_total_limit": 1,
    "report_to": "none",
    "ignore_data_skip": True,  # the batches of a resumed run begin where it stopped
}
CLOSED_BY_STEPS = (
    *_CLOSED, *BY_EPOCHS.fixed, "num_train_epochs", "per_device_eval_batch_size", "dataloader_num_workers",
)  # fmt: skip
