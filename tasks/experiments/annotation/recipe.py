"""One round of the simulated annotation loop: choose texts with the model of the round before, and train."""

from __future__ import annotations

import json
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import write_json
from tasks.common.run import Run
from tasks.common.runs.life import MODEL_FOLDER
from tasks.experiments.annotation.arguments import AnnotationArguments
from tasks.experiments.annotation.selection import grow
from tasks.ner.prediction.predictor import NerPredictor
from tasks.ner.prediction.selection import LOWEST_LOGIT
from tasks.ner.recipe import NerRecipe

LABELED_FILE = "labeled.json"  # in the model's folder: indices of the labeled texts in train_file, in their order


class AnnotationRecipe(NerRecipe):
    """NER on the texts of ``train_file`` that have been labeled so far."""

    name = "annotation"
    arguments = AnnotationArguments

    def read_examples(self, run: Run) -> dict:
        keys, splits = run.keys, super().read_examples(run)
        train = splits["train"]
        if keys.labeled_texts > len(train):
            raise InputError(
                "labeled_texts {labeled_texts}: {train_file} has only {count}",
                labeled_texts=keys.labeled_texts,
                train_file=keys.train_file,
                count=len(train),
            )
        labeled = _labeled_before(keys.previous_run)

        def find(texts):
            folder = Path(keys.previous_run, MODEL_FOLDER)
            predictor = NerPredictor(folder, run.config["device"], run.training.per_device_eval_batch_size)
            return predictor.find(texts, thresholds=LOWEST_LOGIT)

        labeled = grow(train, labeled, keys.labeled_texts, keys.strategy, run.training.seed, find)
        chosen = [train[index] for index in labeled]
        run.facts["labeled"] = {
            "texts": len(chosen),
            "characters": sum(len(example.text) for example in chosen),
            "entities": sum(len(example.entities) for example in chosen),
        }
        run.saved.append(_Labeled(labeled))
        return {**splits, "train": chosen}


def _labeled_before(folder):
    if not folder:
        return []
    return json.loads(Path(folder, MODEL_FOLDER, LABELED_FILE).read_text(encoding="utf-8"))


class _Labeled(list):
    def save_pretrained(self, folder):
        write_json(Path(folder) / LABELED_FILE, self)
