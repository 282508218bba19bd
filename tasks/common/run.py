"""One training run of a recipe, as it fills up."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlenlp.trainer import TrainingArguments

from tasks.common.runs import run_folder
from tasks.common.training.memory import MemoryData


@dataclass
class Run:
    """One training run of a recipe, as it fills up. ``config``, ``keys``, ``training`` and ``given`` are as of
    :class:`~tasks.common.training.settings.Settings`."""

    config: dict[str, Any]
    keys: Any
    training: TrainingArguments
    given: dict[str, Any]
    claimed: contextlib.ExitStack  # within which the run's folder stays locked
    memory: MemoryData  # data that were given in memory, not as files
    checkpoint: Path | None = None  # from which the run is resumed
    is_begun: bool = False  # whether the folder belongs to a run that was begun
    examples: dict[str, list] = field(default_factory=dict)  # of train and, where there are such, dev and test
    datasets: dict[str, Any] = field(default_factory=dict)  # the same, tokenized
    saved: list = field(default_factory=list)  # goes into the model's folder, each by ``save_pretrained(folder)``
    facts: dict[str, Any] = field(default_factory=dict)  # what ``metrics.json`` has beside the scores
    tokenizer: Any = None
    model: Any = None
    trainer: Any = None

    @property
    def output_dir(self) -> Path:
        return Path(self.config["output_dir"])

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints of training itself."""
        return self.output_dir / run_folder.CHECKPOINTS_FOLDER

    @property
    def checkpoints_before(self) -> Path:
        """The folder of those of what :meth:`~tasks.common.recipe.Recipe.before_training` trains."""
        return self.checkpoints / run_folder.BEFORE_FOLDER

    @property
    def batch_size(self) -> int:
        """Of evaluation."""
        return self.training.per_device_eval_batch_size

    @property
    def batches_per_step(self) -> int:
        """Processes times accumulated gradients."""
        return self.training.gradient_accumulation_steps * self.training.dataset_world_size
