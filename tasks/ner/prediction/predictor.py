"""From texts to entities with a trained model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tqdm import tqdm

from tasks.common.errors import InputError
from tasks.common.model_folder import check_least
from tasks.common.predictor import predict_in_bfloat16
from tasks.ner.examples import Entity, as_record, without_overlaps
from tasks.ner.lengths import reading_of
from tasks.ner.prediction.finding import find_in_parts
from tasks.ner.prediction.model_folder import Folder, open_models, refuse_exported
from tasks.ner.prediction.parts import read_parts
from tasks.ner.spans import of_types
from tasks.ner.tokenized_text import TokenizedText


class NerPredictor:
    """Finds entities in texts. Threads may share it.

    Args:
        model_dir: folder that training wrote as ``OUTPUT_DIR/model``; or a list of such folders, of runs on the same
            training file, whose scores are averaged (:class:`tasks.ner.prediction.ensemble.NerEnsemble`); or the folder
            of an exported model. Paddle is imported unless that is an ONNX model.
        device: ``"cpu"``, ``"gpu"`` ...; None takes a GPU where there is one.
        batch_size: texts a batch at most.
        max_tokens: tokens (a character each, mostly) that are computed at once; None takes a length that training
            covered well. Longer texts are cut into overlapping windows, see :mod:`tasks.ner.prediction.windows`.
        show_progress: show a progress bar.
        overlap: longest entity in tokens that is sure to lie whole in a window; None takes that of training, at
            least a quarter and at most half of ``max_tokens``.
        max_entity_tokens: tokens of the longest span that is found, 0 for any; None takes twice those of the longest
            training entity, see :func:`tasks.ner.lengths.entity_bound`.
        bf16: multiply in bfloat16, see :func:`tasks.common.predictor.predict_in_bfloat16`.

    Raises:
        InputError: a folder does not hold a model, several do not fit together, the device cannot be used or has no
            bfloat16, or a size is out of range.
    """

    recipe = "ner"

    def __init__(
        self,
        model_dir: Folder | list[Folder],
        device: str | None = None,
        batch_size: int = 32,
        max_tokens: int | None = None,
        show_progress: bool = False,
        overlap: int | None = None,
        max_entity_tokens: int | None = None,
        bf16: bool = False,
    ):
        check_least("batch_size", batch_size)
        check_least("max_tokens", max_tokens)
        check_least("max_entity_tokens", max_entity_tokens, 0)
        folders = [model_dir] if isinstance(model_dir, Folder) else list(model_dir)
        if not folders:
            raise InputError("no folder of a model is given")
        if len(folders) > 1:
            refuse_exported(folders, "is exported and stands alone; export all of the models into one folder")
        self.tokenizer, self.model, self.features = open_models(folders, device)
        if bf16:
            predict_in_bfloat16(self.model)
        self.types = self.model.config.types
        self.batch_size = batch_size
        self.reading = reading_of(self.model.config, max_tokens, overlap, max_entity_tokens)
        if overlap is not None and not 0 <= overlap <= self.max_tokens - 2:
            raise InputError(f"--overlap {overlap}: must be from 0 to max_tokens - 2, {self.max_tokens - 2}")
        self.show_progress = show_progress
        self.longest_text = self.model.config.longest_text or self.model.config.max_tokens
        self._has_warned = False

    def __call__(self, texts: list[str], where: Sequence[str] | None = None) -> list[dict]:
        """Predict.

        Args:
            texts: list of strings.
            where: for each text its place, for error messages; by default "text 1", "text 2", ...

        Returns:
            For each text, in order, ``{"text": ..., "entities": [...]}``; each entity is a dict with the half-open
            character offsets ``start`` and ``end``, ``type``, ``text``, the logit ``score`` (above the threshold of its
            type, 0 unless tuned) and the ``probability`` that it is right. Entities are ordered by start, end and type,
            and may be nested.

        Raises:
            InputError: ``texts`` is not a list of strings.
        """
        return [as_record(text, entities) for text, entities in zip(texts, self.find(texts, where))]

    def find(
        self,
        texts: list[str],
        where: Sequence[str] | None = None,
        thresholds: float | list[float] | None = None,
    ) -> list[list[Entity]]:
        """As :meth:`__call__`, but for each text its entities.

        Args:
            texts, where: as there.
            thresholds: logits above which a span is an entity, one or one for each type, instead of the model's; then
                overlapping ones are given, too, even if the model's entities do not overlap.
        """
        if isinstance(texts, str):
            raise InputError("texts must be a list of strings, got one string; write [text]")
        where = where or [f"text {number}" for number in range(1, len(texts) + 1)]
        for text, place in zip(texts, where):
            if not isinstance(text, str):
                raise InputError(f"{place}: texts must be strings, got {type(text).__name__}")
        parts = (self._parts(text, place) for text, place in zip(texts, where))
        characters = sum(map(len, texts))
        # the bar stays where it is the only one, and disappears where it is that of a chunk of a stream
        shown: dict[str, Any] = {"unit": "char", "unit_scale": True, "leave": None, "delay": 1}
        with tqdm(total=characters, disable=not self.show_progress, **shown) as progress:
            entities = list(
                find_in_parts(self.model, parts, self.batch_size, self.reading, thresholds, progress.update)
            )
            progress.update(characters - progress.n)  # of characters without a token
        if self.model.config.allow_overlap or thresholds is not None:
            return entities
        return [without_overlaps(of_text) for of_text in entities]

    @property
    def is_calibrated(self) -> bool:
        """Whether the model has temperatures; without them its probabilities are sigmoid(score), on no data's word."""
        return any(one != 1.0 for one in of_types(self.model.config.temperatures, len(self.types)))

    @property
    def max_tokens(self) -> int:
        """Longest text in tokens that is read whole, and length of the windows of a longer one."""
        return self.reading.max_tokens

    @property
    def overlap(self) -> int:
        """Longest entity in tokens that is sure to lie whole in a window."""
        return self.reading.overlap

    def _parts(self, text: str, place: str) -> Iterator[TokenizedText]:
        """The text in parts; tells once, on standard error, of one that is read whole though training had none so
        long."""
        tokens = 0
        for part in read_parts(text, self.tokenizer, self.features):
            tokens += part.size
            yield part
        if not self._has_warned and min(tokens, self.max_tokens) > self.longest_text:
            self._has_warned = True
            print(
                (
                    f"note: {place}: {min(tokens, self.max_tokens)} tokens are read at once, and no training text had "
                    f"more than {self.longest_text}: entities may be missed; leave out --max_tokens, or give "
                    f"{self.longest_text} or less"
                ),
                file=sys.stderr,
            )

    def tokenize(self, text: str) -> TokenizedText:
        """The tokens of a text, with the features that the model takes."""
        ids, offsets, _ = self.tokenizer.encode(text)
        return TokenizedText(ids, offsets, [], None if self.features is None else self.features(text, offsets))
