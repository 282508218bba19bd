"""What a recipe defines. :mod:`paddle_rope.tasks.common.training.loop` shows in which order it is used."""

from typing import Any, ClassVar

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.common.reports.tables import scores_line
from paddle_rope.tasks.common.training.arguments import EncoderArguments
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.run import Run, RunData
from paddle_rope.tasks.common.training.settings import Settings


class Recipe:
    """What differs between tasks. Everything that they share is in functions, which no recipe can override."""

    arguments: ClassVar[type[EncoderArguments]]  # the configuration keys, and the facts that need no Paddle

    # ---- from files to a model

    def read(self, settings: Settings, memory: MemoryData) -> RunData:
        """The data of a run, and the keys that they decide."""
        raise NotImplementedError

    def new_tokenizer(self, run: Run) -> Tokenizer:
        """A tokenizer for a model from scratch."""
        texts = (example.text for example in run.examples["train"])
        return CharTokenizer.from_corpus(texts, run.keys.vocab_min_count)

    def model_options(self, run: Run) -> dict[str, Any]:
        """The options of the model's configuration that depend on the data or on ``run.tokenizer``."""
        return {}

    def dataset(self, run: Run, split: str) -> Any:
        """The tokenized examples of a split. Of ``train`` it has items in ``lengths`` tokens and ``collate``, which
        makes a batch of them; or, if the recipe counts in steps, batches as items, ``batches_per_step``, and ``ends``,
        the steps after which the run is evaluated."""
        raise NotImplementedError

    def longest(self, run: Run) -> int:
        """Tokens of the longest text that the model reads at once, in training or evaluation."""
        return max(max(dataset.lengths) for dataset in run.datasets.values())

    def describe(self, run: Run) -> None:
        """Print the model and the data of the run; nothing has been written yet."""
        raise NotImplementedError

    def prepare(self, run: Run) -> None:
        """Work on the model and on ``run.trainer`` before training, also in a resumed run."""

    # ---- scores

    def dev_scores(self, run: Run) -> dict[str, float]:
        """The scores that an evaluation during training logs, including the metric that chooses the checkpoint."""
        scores, _ = self.score(run, "dev")
        return {name: scores[name] for name in self.arguments.SCORES if name in scores}

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """(scores, records) of the model on a split, dev first; records are the lines of ``predictions_dev.jsonl``, or
        None."""
        raise NotImplementedError

    def report(self, title: str, scores: dict[str, Any]) -> None:
        """Print the scores of a trained model."""
        print(f"{visible(title)}: {scores_line(scores, self.arguments.SCORES)}")

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of the models of several finished runs as an ensemble, by split; None if there is no ensemble."""
        return None
