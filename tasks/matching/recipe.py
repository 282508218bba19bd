"""The recipe of text matching, and how its models are exported."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from paddle.static import InputSpec

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.export.exporter import Exporter
from paddle_rope.tasks.common.recipe import Recipe
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.run import Run
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.matching import prediction
from paddle_rope.tasks.matching.arguments import CROSS_ENCODER, PAIRS, TRIPLES, MatchingArguments
from paddle_rope.tasks.matching.data import read_splits, task_of
from paddle_rope.tasks.matching.model import MatchingModel

CHECKED_PAIRS = [("花呗可以分期吗", "花呗如何分期还款"), ("我的银行卡丢了怎么办", "好")]


class MatchingRecipe(Recipe):
    """Scores of pairs and triples of texts: accuracy, F1, Spearman correlation."""

    arguments = MatchingArguments
    model_class = MatchingModel
    scores = prediction.SCORES
    length_key = "max_tokens"
    label_dtype = "float32"
    predictor = prediction.MatchingPredictor
    scores_line = staticmethod(prediction.scores_in_words)

    def read(self, settings: Settings, memory: MemoryData) -> dict[str, Any]:
        return {"examples": read_splits(settings.keys, settings.training.seed, memory.examples)}

    def new_tokenizer(self, run: Run) -> Tokenizer:
        texts = dict.fromkeys(text for example in run.examples["train"] for text in example.texts)
        return CharTokenizer.from_corpus(texts, run.keys.vocab_min_count)

    def model_options(self, run: Run) -> dict[str, Any]:
        task = task_of(run.examples["train"])
        is_cross_encoder = run.keys.architecture == CROSS_ENCODER
        labels = [example.label for example in run.examples["train"]]
        options = {
            "task": task,
            "threshold": 0.5 if task == PAIRS and is_cross_encoder else None,
            "grades": [min(labels), max(labels)] if task != TRIPLES and is_cross_encoder else None,
        }
        if run.keys.pretrained is None:
            options["type_vocab_size"] = 2 if run.keys.token_type_ids else 0
        return options

    def dataset(self, run: Run, split: str) -> prediction.MatchingDataset:
        return prediction.MatchingDataset(run.examples[split], run.tokenizer, run.model.config)

    def describe(self, run: Run) -> None:
        for split, dataset in run.datasets.items():
            print(prediction.data_report(split, dataset))
        chosen_by = prediction.choosing_score(run.model.config) if run.training.load_best_model_at_end else None
        run.facts["chosen_by"] = chosen_by
        chosen = f"; the epoch is chosen by dev {chosen_by}" if chosen_by else ""
        print(run.model.config.architecture + chosen)

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """Score a split; a bi-encoder of 0/1 pairs takes the best threshold on dev, which is among the scores."""
        return prediction.evaluate_model(
            run.model, run.datasets[split], run.batch_size, chooses_threshold=split == "dev"
        )

    def dev_scores(self, run: Run) -> dict[str, float]:
        scores, _ = self.score(run, "dev")
        return {**scores, self.arguments.METRIC: scores[prediction.choosing_score(run.model.config)]}

    def records(self, run: Run, split: str, predictions: Any) -> Iterator[dict[str, Any]]:
        """Place, label and score of each pair; place and scores of the two candidates of each triple; no texts."""
        for example, row in zip(run.examples[split], predictions.tolist()):
            if len(row) == 1:
                yield {"where": example.where, "label": example.label, "score": row[0]}
            else:
                closer, farther = row if example.label == 1 else row[::-1]
                yield {"where": example.where, "closer": closer, "farther": farther}


class MatchingExporter(Exporter):
    """Bi-encoders, with the vectors of texts as output, and cross-encoders, with the logits of pairs."""

    recipe = MatchingRecipe
    output = "representations"

    def inputs(self, config: Any) -> list[InputSpec | None]:
        types = InputSpec([None, None], "int64", "token_type_ids") if config.token_type_ids else None
        return [*super().inputs(config), types]

    def scores(self, predictor: Any) -> np.ndarray:
        return predictor.score(CHECKED_PAIRS)
