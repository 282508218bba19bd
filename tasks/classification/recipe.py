"""The recipe of document classification, and how its models are exported."""

import itertools
from typing import Any

import numpy as np

from paddle_rope.tasks.classification import prediction
from paddle_rope.tasks.classification.arguments import ClassificationArguments
from paddle_rope.tasks.classification.data import class_names, read_splits, with_unseen
from paddle_rope.tasks.common.errors import visible
from paddle_rope.tasks.common.export.exporter import Exporter
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import Run, RunData
from paddle_rope.tasks.common.training.settings import Settings

CHECKED_TEXTS = ["球队昨晚客场以三比一取胜，主教练对后防线的表现十分满意。", "新手机今天发布。", "好"]


class ClassificationRecipe(Recipe):
    """One label for each text: accuracy and macro F1."""

    arguments = ClassificationArguments
    report = staticmethod(prediction.print_scores)

    def read(self, settings: Settings, memory: MemoryData) -> RunData:
        return RunData(read_splits(settings.keys, memory.examples))

    def model_options(self, run: Run) -> dict:
        return {"classes": class_names(run.examples["train"])}

    def dataset(self, run: Run, split: str) -> prediction.ClassificationDataset:
        examples = run.examples[split]
        classes = with_unseen(run.model.config.classes, examples)
        dataset = prediction.ClassificationDataset(examples, run.tokenizer, classes, run.keys.max_characters)
        run.facts.setdefault("texts_cut", {})[split] = dataset.cut
        return dataset

    def describe(self, run: Run) -> None:
        prediction.print_data_report(run.datasets)
        classes = run.model.config.classes
        unseen = with_unseen(classes, itertools.chain(*run.examples.values()))[len(classes) :]
        missed = f"; not in train, so never found: {', '.join(unseen)}" if unseen else ""
        print(f"{len(classes)} classes{visible(missed)}")

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        scores, found = prediction.evaluate_model(run.model, run.datasets[split], run.batch_size)
        records = (
            {**prediction.as_record(example.text, run.model.config.classes, of_text), "gold": example.label}
            for example, of_text in zip(run.examples[split], found)
        )
        return scores, records


class ClassificationExporter(Exporter):
    """Classifiers, with the probabilities of the classes as output."""

    predictor = prediction.Classifier
    outputs = ("probabilities",)

    def scores(self, predictor: Any) -> np.ndarray:
        return predictor.probabilities(CHECKED_TEXTS)
