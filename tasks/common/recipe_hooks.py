"""What a recipe says about its task: how to read, build, batch, score and report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from paddle.io import Dataset

from paddle_rope.roformer import RoFormerPretrainedModel
from tasks.common.errors import visible
from tasks.common.run import Run
from tasks.common.scores import scores_line
from tasks.common.training.arguments import EncoderArguments
from tasks.common.training.monitor import VisualDLMonitor


class RecipeHooks:
    """The part of a :class:`~tasks.common.recipe.Recipe` that differs from task to task.

    Attributes:
        name: on the command line and in plans of experiments.
        arguments: dataclass of the configuration keys.
        model_class: of the model.
        scores: names of the scores that are shown, and summed up over several runs.
        next_step: the line after training that says what to do, with ``{model}`` for the model's folder and
            ``{command}`` for ``paddle-rope``.
        predictor: class of the predictor of a trained model's folder; it takes device, batch_size, show_progress, ...
        example_class: of the examples, which may be given in memory, too; None where data come from files only.
        lighter: the keys with which a run needs less memory, in words.
    """

    name: ClassVar[str]
    arguments: ClassVar[type[EncoderArguments]]
    model_class: ClassVar[type[RoFormerPretrainedModel]]
    monitor_class: ClassVar[type[VisualDLMonitor]] = VisualDLMonitor
    scores: ClassVar[tuple[str, ...]] = ()
    next_step: ClassVar[str]
    predictor: ClassVar[Callable[..., Any]]
    example_class: ClassVar[type | None] = None
    lighter: ClassVar[str] = "a smaller --per_device_train_batch_size or --recompute true"

    def read(self, run: Run) -> None:
        """Fill ``run.examples``."""
        raise NotImplementedError

    def fit(self, run: Run) -> None:
        """Choose keys by what was read, with ``choose``; nothing has been made of the keys yet."""

    def texts(self, run: Run) -> Iterable[str]:
        """The texts whose characters a new tokenizer knows."""
        return (example.text for example in run.examples["train"])

    def model_options(self, run: Run, tokenizer: Any) -> dict[str, Any]:
        """The options of the model's configuration beside those of the encoder."""
        return {}

    def dataset(self, run: Run, split: str) -> Dataset:
        """The tokenized examples of a split."""
        raise NotImplementedError

    def lengths(self, run: Run) -> list[int]:
        """Tokens of each training example, for batches of like length."""
        return [len(text.ids) for text in run.datasets["train"].texts]

    def collator(self, run: Run) -> Any:
        """What makes a batch of tokenized examples."""
        raise NotImplementedError

    def describe(self, run: Run) -> None:
        """Print what is trained on what; nothing has been written yet."""
        raise NotImplementedError

    def before_training(self, run: Run) -> None:
        """Work on the model of a new run, or one resumed from a checkpoint of this work, before it is trained."""

    def after_training(self, run: Run) -> None:
        """Work on the trained model before it is scored."""

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """(scores, predictions) of the model on a split."""
        raise NotImplementedError

    def dev_scores(self, run: Run) -> dict[str, float]:
        """What an evaluation during training logs; the metric that chooses the checkpoint is among it."""
        scores, _ = self.score(run, "dev")
        return {name: scores[name] for name in self.scores if name in scores}

    def report(self, title: str, scores: dict[str, Any]) -> None:
        """Print scores."""
        print(f"{visible(title)}: {self.scores_line(scores)}")

    def records(self, run: Run, split: str, predictions: Any) -> Iterator[dict[str, Any]]:
        """The lines of ``predictions_dev.jsonl``."""
        raise NotImplementedError

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of the models of several finished runs as an ensemble, by split; None where there is no such thing."""
        return None

    @staticmethod
    def read_labeled(path: str | os.PathLike) -> list:
        """The examples of a labeled file."""
        raise NotImplementedError

    @staticmethod
    def read_lines(lines: list[str], name: str) -> list:
        """The examples of the lines of a labeled file, or of as many records in memory."""
        raise NotImplementedError

    def record_of(self, example: Any) -> dict[str, Any]:
        """The record, as a line of a file of JSON lines holds it, of an example."""
        raise NotImplementedError

    def evaluate_predictor(self, predictor: Any, examples: list, title: str, **shown: Any) -> dict[str, Any]:
        """Score a predictor on examples, print the scores and return them."""
        raise NotImplementedError

    def scores_line(self, scores: dict[str, Any]) -> str:
        """The scores that are shown, in one line."""
        return scores_line(scores, self.scores)
