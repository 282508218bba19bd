"""From texts to entities with a trained model."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

from paddle_rope.global_pointer.decoding import ScoredSpan, decode_spans, highest
from paddle_rope.tasks.common.errors import InputError, damage_reported, visible
from paddle_rope.tasks.common.export.model import ExportedModel
from paddle_rope.tasks.common.inference import Batch
from paddle_rope.tasks.common.model_folder import COPY, folders_of, is_exported, refuse_incomplete
from paddle_rope.tasks.common.predictor import Folder, Predictor, check_positions
from paddle_rope.tasks.common.training.data import LabeledData
from paddle_rope.tasks.ner.arguments import NerArguments, NerConfig, NerOptions, of_types
from paddle_rope.tasks.ner.batching import NerDataset, with_unseen
from paddle_rope.tasks.ner.data.reading import EntityTextStream, check_labeled, read_examples, read_lines
from paddle_rope.tasks.ner.examples import Entity, Example, Found, TokenizedText, as_record
from paddle_rope.tasks.ner.features import FILE_NAME as FEATURES_FILE
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.lengths import window_settings
from paddle_rope.tasks.ner.metrics import scores_and_errors, worst_examples
from paddle_rope.tasks.ner.prediction import finding
from paddle_rope.tasks.ner.prediction.entity_filter import EntityFilter
from paddle_rope.tasks.ner.prediction.finding import Bounds, Window
from paddle_rope.tasks.ner.prediction.output_formats import FORMATS, written
from paddle_rope.tasks.ner.reports.printed import print_data_report, print_errors, print_scores, print_worst_examples
from paddle_rope.tasks.ner.reports.reliability import print_reliability, reliability

SPANS_PER_TOKEN = 4  # that a window may have; trained models give about one a probability above 0.001
ANY_LENGTH = np.array([np.iinfo(np.int64).max])  # for the graph: predictors apply their own bound


class ExportedNerModel(ExportedModel):
    """The graph of an exported folder as a :class:`~paddle_rope.tasks.ner.model.NerModel` for prediction."""

    outputs: ClassVar[tuple[str, ...]] = ("logits",)

    def logits(self, batch: Batch) -> list[np.ndarray]:
        """The ``outputs`` of the graph; the first has the scores of spans."""
        names = self.outputs if {*self.outputs} <= {*self.graph.outputs} else None  # Paddle Inference: in this order
        rows, tokens = batch["input_ids"].shape
        return self.run(batch, (rows, len(self.config.types), tokens, self.config.max_span_length or tokens), names)

    def find_spans(
        self, batch: Batch, thresholds: float | Sequence[float], most: int | None = None
    ) -> list[list[ScoredSpan]]:
        """As :meth:`paddle_rope.tasks.ner.model.NerModel.find_spans`, in any order. An ONNX graph finds the spans
        itself."""
        if "spans" not in self.graph.outputs:
            return decode_spans(self.logits(batch)[0], thresholds, self.config.max_span_length is not None, most)
        bounds = np.array(of_types(thresholds, len(self.config.types)), dtype=np.float32)
        given = {**batch, "thresholds": bounds, "max_entity_tokens": ANY_LENGTH}
        found, scores = self.run(given, (None, 4), ("spans", "scores"))
        spans: list[list[ScoredSpan]] = [[] for _ in batch["input_ids"]]
        kept = highest(found[:, 0], scores, most)
        for (text, kind, start, end), score in zip(found[kept].tolist(), scores[kept].tolist()):
            spans[text].append(ScoredSpan(start, end, kind, score))
        return spans


class NerPredictor(Predictor):
    """Finds entities in texts. Threads may share it.

    Args:
        model_dir: folder of a trained or exported model; or a list of folders of models trained on the same file, whose
            scores are averaged (:class:`paddle_rope.tasks.ner.model.NerEnsemble`).
        device, batch_size, show_progress: as in :class:`~paddle_rope.tasks.common.predictor.Predictor`.
        options: the other :class:`~paddle_rope.tasks.ner.arguments.NerOptions`. Texts of more than ``max_tokens``
            tokens are read in overlapping windows (:mod:`paddle_rope.tasks.ner.prediction.finding`).

    Raises:
        InputError: as in :class:`~paddle_rope.tasks.common.predictor.Predictor`, or several models do not fit together,
            or an option is out of range.
    """

    arguments = NerArguments
    labeled = LabeledData(read_lines, read_examples, ("fields", "on_error"))
    config_class = NerConfig
    options_class = NerOptions
    exported_class = ExportedNerModel
    decoding = finding.ENTITIES

    def __init__(self, model_dir: Folder | list[Folder], *args: Any, **options: Any):
        super().__init__(model_dir, *args, **options)
        given, config = self.options, self.model.config
        check_positions("max_tokens", given.max_tokens, config)
        self.types = config.types
        self.window_settings = window_settings(config, given.max_tokens, given.overlap, given.max_entity_tokens)
        self.max_tokens = self.window_settings.max_tokens  # of the longest text that is read whole, and of windows
        if given.overlap is not None and given.overlap > self.max_tokens - 2:
            raise InputError(f"--overlap {given.overlap}: must be from 0 to max_tokens - 2, {self.max_tokens - 2}")
        self.longest_text = config.longest_text or config.max_characters
        self._has_warned = False
        self.entity_filter = EntityFilter.of(given)
        self.entity_filter.check(config)

    @property
    def is_calibrated(self) -> bool:
        """Whether the model has temperatures; without them its probabilities are sigmoid(score), not fitted to data."""
        return any(one != 1.0 for one in of_types(self.model.config.temperatures, len(self.types)))

    def _open(self, folder, device):
        folders = folders_of(folder)
        for one in folders if len(folders) > 1 else ():
            if is_exported(one):
                raise InputError(f"{one}: is exported and cannot join others; export all of the models into one folder")
        tokenizers, models = zip(*(super(NerPredictor, self)._open(one, device) for one in folders))
        model = models[0]
        if len(folders) > 1:
            from paddle_rope.tasks.ner.model import NerEnsemble

            model = NerEnsemble(folders, list(models))
        self.features = load_features(folders[0], model.config)
        return tokenizers[0], model

    def __call__(
        self, texts: list[str], where: Sequence[str] | None = None, entity_filter: EntityFilter | None = None
    ) -> list[dict]:
        """For each text, in order, ``{"text": ..., "entities": [...]}``.

        Each entity is a dict with the half-open character offsets ``start`` and ``end``, ``type``, ``text``, the logit
        ``score`` (above the threshold of its type, 0 unless tuned) and the ``probability`` that it is right. Entities
        are ordered by start, end and type, and may be nested. ``where`` has the place of each text for error messages,
        by default "text 1", "text 2", ...; ``entity_filter`` replaces the predictor's own. A forced entity has the
        ``score`` None. Raises InputError if ``texts`` is not a list of strings.
        """
        return list(map(self.record, texts, self.find(texts, where, entity_filter=entity_filter)))

    def answer(self, items, where):
        return self(list(items), where)

    @classmethod
    def stream(cls, source, chunk_items, **reading):
        return EntityTextStream(source, chunk_items, reading.get("fields"))

    @property
    def long_texts(self):
        return max(self.max_tokens, self.longest_text), f"{self.window_settings.windows} (--max_tokens)"

    def written(self, predicted, format, name):
        return written(predicted, format or FORMATS[0], name)

    def record(self, text: str, found: Any) -> dict:
        """The record of a text, as in :meth:`__call__`, from what is found in it."""
        return as_record(text, found)

    def kept(self, text: str, found: Any, entity_filter: EntityFilter) -> Any:
        """What a filter keeps of what is found in a text."""
        return entity_filter.kept(text, found, self.model.config)

    def find(
        self,
        texts: list[str],
        where: Sequence[str] | None = None,
        thresholds: float | list[float] | None = None,
        entity_filter: EntityFilter | None = None,
    ) -> Found:
        """The entities of each text; other arguments as in :meth:`__call__`. ``thresholds`` are logits above which a
        span is an entity, one or one per type: then all such spans are returned, overlapping or not, unfiltered."""
        entity_filter = entity_filter or self.entity_filter
        entity_filter.check(self.model.config)
        if isinstance(texts, str):
            raise InputError("texts must be a list of strings, got one string; write [text]")
        where = where or [f"text {number}" for number in range(1, len(texts) + 1)]
        for text, place in zip(texts, where):
            if not isinstance(text, str):
                raise InputError(f"{place}: texts must be strings, got {type(text).__name__}")
        windows = (window for text, place in zip(texts, where) for window in self.windows(text, place, entity_filter))
        bounds = entity_filter.candidates(self.model.config) if thresholds is None else thresholds
        characters = sum(map(len, texts))
        # the bar stays if it is the only one, and disappears if it belongs to a chunk of a stream
        shown: dict[str, Any] = {"unit": "char", "unit_scale": True, "leave": None, "delay": 1}
        with tqdm(total=characters, disable=not self.show_progress, **shown) as progress:
            longest = self.window_settings.max_entity_tokens
            given = self.batch_size, bounds, longest, progress.update, self.decoding
            entities = list(finding.entities_of_texts(self.model, windows, *given))
            progress.update(characters - progress.n)  # for characters without a token
        if thresholds is not None:
            return entities
        return [self.kept(text, of_text, entity_filter) for text, of_text in zip(texts, entities)]

    def windows(
        self, text: str, place: str = "the text", entity_filter: EntityFilter | None = None
    ) -> Iterator[Window]:
        """The windows in which a text is read, tokenized lazily; a single one unless the text is long."""
        parts = self._parts(text, place, entity_filter or self.entity_filter)
        return finding.windows_of(parts, self.max_tokens, self.window_settings.overlap)

    def find_in_windows(
        self, windows: Sequence[Window], thresholds: Sequence[float] | None = None, top: bool = False
    ) -> list[tuple[Bounds, list[Entity]]]:
        """Find the entities in one batch of windows, of one text or of several; :meth:`join` takes them. ``thresholds``
        come from :meth:`EntityFilter.candidates`, by default of the predictor's own filter. A window may have
        ``SPANS_PER_TOKEN`` spans above them for each token that it has space for; if it has more, ``top`` keeps those
        with the highest scores.

        Raises:
            InputError: a window has more, without ``top``.
        """
        most = SPANS_PER_TOKEN * self.max_tokens

        def find_spans(batch, thresholds):
            found = self.model.find_spans(batch, thresholds, most + (not top))
            if not top and max(map(len, found)) > most:
                what = f"more than {most:,} spans in {self.max_tokens} tokens"
                raise InputError(f"{what} are probable enough; raise min_probability, or give top_k")
            return found

        model = SimpleNamespace(config=self.model.config, find_spans=find_spans)
        texts, longest = [window.text for window in windows], self.window_settings.max_entity_tokens
        bounds = list(thresholds or self.entity_filter.candidates(self.model.config))
        found = finding.predict_entities(model, texts, len(texts), bounds, longest, decoding=self.decoding)
        return [(window.bounds, entities) for window, entities in zip(windows, found)]

    def join(
        self, text: str, found: Sequence[tuple[Bounds, list[Entity]]], entity_filter: EntityFilter | None = None
    ) -> dict:
        """The record of a text, as in :meth:`__call__`, from the entities of its windows."""
        merged = self.decoding.merge(*zip(*found))
        return self.record(text, self.kept(text, merged, entity_filter or self.entity_filter))

    def _parts(self, text: str, place: str, entity_filter: EntityFilter) -> Iterator[TokenizedText]:
        """The text in parts. Prints a note, once, if a text is read whole and is longer than all training texts."""
        tokens, ruler = 0, entity_filter.ruler
        hinted = ruler.hinted(text) if self.features is not None and ruler is not None else ()
        for part in finding.read_parts(text, self.tokenizer, self.features, hinted=hinted):
            tokens += part.size
            yield part
        if not self._has_warned and min(tokens, self.max_tokens) > self.longest_text:
            self._has_warned = True
            note = (
                f"note: {place}: {min(tokens, self.max_tokens)} tokens are read at once, and no training text had more "
                f"than {self.longest_text}: entities may be missed; leave out --max_tokens, or give "
                f"{self.longest_text} or less"
            )
            print(note, file=sys.stderr)

    def evaluate(self, examples: list[Example], title: str, num_examples: int = 5) -> dict[str, Any]:
        """Score predictions on labeled examples, print the scores, the kinds of errors and the ``num_examples`` texts
        with the most errors, and return all of it. Entities of types that the model does not have count as missed."""
        check_labeled(examples, title)
        config = self.model.config
        types = with_unseen(self.types, examples)
        dataset = NerDataset(examples, self.tokenizer, types, max_span_length=config.max_span_length)
        if unseen := ", ".join(types[len(self.types) :]):
            print(visible(f"note: {title} has types that the model does not have, which count as missed: {unseen}"))
        print_data_report({title: dataset})
        longer = sum(text.size > self.max_tokens for text in dataset.texts)
        if longer:
            print(f"  {longer} of the texts are longer than {self.max_tokens} tokens: {self.window_settings.windows}")
        found = self.find([example.text for example in examples])
        scores = {**self._scores(examples, found), "worst_examples": self._worst(examples, found, num_examples)}
        self._print(title, scores)
        print_worst_examples(scores["worst_examples"])
        return scores

    _worst = staticmethod(worst_examples)

    def _scores(self, examples, found):
        scores = scores_and_errors(examples, found, with_unseen(self.types, examples))
        return {**scores, "reliability": reliability(examples, found, self.types, self.model.config.temperatures)}

    def _print(self, title, scores):
        print_scores(title, scores)
        print_errors(scores)
        print_reliability(scores["reliability"])

    def tokenize(self, text: str) -> TokenizedText:
        """The tokens of a text, with the features that the model takes."""
        ids, offsets, _ = self.tokenizer.encode(text)
        return TokenizedText(ids, offsets, [], None if self.features is None else self.features(text, offsets))


def load_features(folder: Folder, config: Any) -> WordFeatures | None:
    """The word features of a model's folder, None if it has none; raises InputError if they are missing or damaged."""
    if config.features is None:
        return None
    refuse_incomplete(folder, (FEATURES_FILE,))
    with damage_reported(f"{folder}: {FEATURES_FILE}", COPY):
        features = WordFeatures.from_pretrained(Path(folder))
        if features.sizes != config.features:
            raise ValueError(f"its sizes are {features.sizes}, but the model's are {config.features}")
    return features
