"""Predictions as text: the formats of ``paddle-rope predict`` and ``select``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TextIO

from tasks.common.errors import visible
from tasks.common.files import json_line
from tasks.ner.examples import entities_of, make_example, without_overlaps
from tasks.ner.formats import TEXT_FORMATS
from tasks.ner.formats.label_studio import prediction_task

# Names of tasks.ner.formats. The first is the one with everything in it, the scores too.
FORMATS = ("jsonl", "cluener", "bio", "doccano", "labelstudio")


class PredictionWriter:
    """Writes records as they come into an open file, in one of :data:`FORMATS`; a context manager, at whose end the
    file is whole. ``model_version`` is what Label Studio is to call the model; ``left_out`` counts the entities that
    the format could not hold."""

    def __init__(self, file: TextIO, format: str, model_version: str = "paddle-rope"):
        self.left_out = 0
        self._file, self._format, self._model_version = file, format, visible(model_version)
        self._between = "[\n"

    def __enter__(self) -> PredictionWriter:
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if kind is None and self._format == "labelstudio":
            self._file.write("[]\n" if self._between == "[\n" else "\n]\n")

    def write(self, records: Iterable[dict], where: Iterable[str]) -> None:
        """Write records as from :class:`tasks.ner.prediction.predictor.NerPredictor`. ``where`` has a place for each,
        which the InputError names if a text or a type cannot be written in the format."""
        for record, place in zip(records, where):
            self._file.writelines(self._written(record, place))

    def _written(self, record: dict, place: str) -> Iterable[str]:
        if self._format == "jsonl":
            return [json_line(record)]
        if self._format == "labelstudio":
            between, self._between = self._between, ",\n"
            return [between, json.dumps(prediction_task(record, self._model_version), ensure_ascii=False)]
        entities = entities_of(record)
        if self._format == "bio":
            entities = without_overlaps(entities)
            self.left_out += len(record["entities"]) - len(entities)
            if not record["text"]:
                return ["\n"]  # a sentence without characters
        return TEXT_FORMATS[self._format].write([make_example(record["text"], entities, place)])
