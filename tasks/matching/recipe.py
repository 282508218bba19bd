"""The recipe of text matching, and how its models are exported."""

from typing import Any

import numpy as np
from paddle.static import InputSpec

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.export.exporter import Exporter
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import Run, RunData
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.matching import prediction
from paddle_rope.tasks.matching.arguments import CROSS_ENCODER, PAIRS, TRIPLES, MatchingArguments
from paddle_rope.tasks.matching.data import read_splits, task_of

CHECKED_PAIRS = [("花呗可以分期吗", "花呗如何分期还款"), ("我的银行卡丢了怎么办", "好")]


class MatchingRecipe(Recipe):
    """Scores of pairs and triples of texts: accuracy, F1, Spearman correlation."""

    arguments = MatchingArguments

    def read(self, settings: Settings, memory: MemoryData) -> RunData:
        return RunData(read_splits(settings.keys, settings.training.seed, memory.examples))

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

    def dev_scores(self, run: Run) -> dict[str, float]:
        scores, _ = self.score(run, "dev")
        return {**scores, self.arguments.METRIC: scores[prediction.choosing_score(run.model.config)]}

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """Score a split; a bi-encoder of 0/1 pairs takes the best threshold on dev, which is among the scores. The
        records have place, label and score of each pair, or place and scores of the two candidates of each triple, and
        no texts."""
        scores, outputs = prediction.evaluate_model(
            run.model, run.datasets[split], run.batch_size, chooses_threshold=split == "dev"
        )
        return scores, map(_record, run.examples[split], outputs.tolist())


def _record(example, row):
    if len(row) == 1:
        return {"where": example.where, "label": example.label, "score": row[0]}
    closer, farther = row if example.label == 1 else row[::-1]
    return {"where": example.where, "closer": closer, "farther": farther}


class MatchingExporter(Exporter):
    """Bi-encoders, with the vectors of texts as output, and cross-encoders, with the logits of pairs."""

    predictor = prediction.MatchingPredictor
    outputs = ("representations",)

    def inputs(self, config: Any) -> list[InputSpec | None]:
        types = InputSpec([None, None], "int64", "token_type_ids") if config.token_type_ids else None
        return [*super().inputs(config), types]

    def scores(self, predictor: Any) -> np.ndarray:
        return predictor.score(CHECKED_PAIRS)
