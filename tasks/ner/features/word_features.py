"""Features of the tokens of a text, with the vocabularies and the gazetteer of the training data."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

import numpy as np

from tasks.common.files import write_json
from tasks.ner.examples import Example
from tasks.ner.features.analysis import Analysis
from tasks.ner.features.chinese_words import jieba_version
from tasks.ner.features.columns import count_values, segmentation_values, token_columns
from tasks.ner.features.flags import DICTIONARY_CLASSES, PLACES, dictionary_spans, span_flags
from tasks.ner.features.gazetteer import Gazetteer
from tasks.ner.features.kinds import COLUMNS, JIEBA_KINDS, UNKNOWN, check_kinds
from tasks.ner.features.matching import is_storable
from tasks.ner.features.token_features import TokenFeatures

FILE_NAME = "features.json"
FIRST_VALUE = UNKNOWN + 1  # number of a vocabulary's first value
logger = logging.getLogger(__name__)


class WordFeatures:
    """Turns texts into :class:`TokenFeatures`.

    Args:
        kinds: some of ``FEATURE_KINDS``.
        vocabularies: dict from each of the kinds in ``COLUMNS`` to the list of its values.
        gazetteer: :class:`Gazetteer` if it is one of the kinds, else None.

    Raises:
        ValueError: a kind is unknown, or vocabularies or gazetteer are not those of the kinds.
    """

    def __init__(self, kinds: Iterable[str], vocabularies: dict[str, list[str]], gazetteer: Optional[Gazetteer] = None):
        self.kinds = check_kinds(kinds)
        if set(vocabularies) != set(COLUMNS).intersection(self.kinds):
            raise ValueError(f"vocabularies of {', '.join(vocabularies) or 'nothing'} for {', '.join(self.kinds)}")
        if (gazetteer is not None) != ("gazetteer" in self.kinds):
            raise ValueError("a gazetteer is needed for the feature 'gazetteer', and for no other")
        self.vocabularies = vocabularies
        self.gazetteer = gazetteer
        self._numbers = {
            kind: {value: number for number, value in enumerate(values, FIRST_VALUE)}
            for kind, values in vocabularies.items()
        }
        self._segmentations = {}  # of training texts that have yet to be seen as such: they take long
        self._num_flags = PLACES * (
            ("dictionary" in self.kinds) * DICTIONARY_CLASSES + (gazetteer.num_classes if gazetteer else 0)
        )

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[Example],
        kinds: Iterable[str],
        min_count: int = 3,
        more: Sequence[Example] = (),
        more_min_count: int = 20,
    ) -> WordFeatures:
        """Build vocabularies and gazetteer.

        Args:
            examples: the training data.
            kinds: some of ``FEATURE_KINDS``.
            min_count: values that occur less often become unknown.
            more: examples without labels, for the vocabularies alone.
            more_min_count: values that are rare in the training data are kept if they occur so often in all.
        """
        kinds = check_kinds(kinds)
        counts = {kind: (Counter(), Counter()) for kind in COLUMNS if kind in kinds}  # in examples; in all
        segmentations = {}
        for number, example in enumerate((*examples, *more) if counts else ()):
            analysis = Analysis(example.text)
            for kind, (of_examples, of_all) in counts.items():
                values = count_values(analysis, kind)
                of_all.update(values)
                if number < len(examples):
                    of_examples.update(values)
            if "segmentation" in kinds or "words" in kinds:
                segmentations[example.text] = analysis.segmentation
        vocabularies = {}
        for kind, (of_examples, of_all) in counts.items():
            values = sorted(
                value
                for value, count in of_all.items()
                if (of_examples[value] >= min_count or count >= more_min_count) and is_storable(value)
            )
            vocabularies[kind] = segmentation_values(values) if kind == "segmentation" else values
        features = cls(kinds, vocabularies, Gazetteer.from_examples(examples) if "gazetteer" in kinds else None)
        features._segmentations = segmentations
        return features

    @property
    def sizes(self) -> dict:
        """What a model must know: ``{"tables": {kind: values with none and unknown}, "flags": number of flags}``."""
        tables = {kind: FIRST_VALUE + len(self.vocabularies[kind]) for kind in COLUMNS if kind in self.kinds}
        return {"tables": tables, "flags": self._num_flags}

    def __call__(self, text: str, offsets: list[tuple[int, int]], own: Optional[Example] = None) -> TokenFeatures:
        """Features of a text.

        Args:
            text: string.
            offsets: half-open characters of each token; empty for special tokens, whose features are all 0.
            own: the example of the text if it is one of the training data. The gazetteer leaves its entities and
                occurrences out: a text must not find its own labels there, as texts to come will not find theirs.
        """
        analysis = Analysis(text)
        if text in self._segmentations:
            analysis.segmentation = self._segmentations.pop(text)
        columns = [
            [0 if value is None else numbers.get(value, UNKNOWN) for value in values]
            for kind, numbers in self._numbers.items()
            for values in token_columns(analysis, offsets, kind)
        ]
        columns = np.array(columns, dtype=np.int32).reshape(len(columns), len(offsets)).T
        flags = [np.zeros([len(offsets), 0], dtype=np.uint8)]
        if "dictionary" in self.kinds:
            flags.append(span_flags(dictionary_spans(analysis), DICTIONARY_CLASSES, offsets))
        if self.gazetteer is not None:
            flags.append(span_flags(self.gazetteer.spans(text, own), self.gazetteer.num_classes, offsets))
        return TokenFeatures(columns, np.packbits(np.concatenate(flags, axis=1), axis=1), self._num_flags)

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write ``features.json``."""
        content = {
            "kinds": list(self.kinds),
            "jieba": jieba_version() if self._needs_jieba else None,
            "vocabularies": self.vocabularies,
        }
        if self.gazetteer is not None:
            content["gazetteer"] = {name: getattr(self.gazetteer, name) for name in ("occurrences", "entities")}
        write_json(Path(folder) / FILE_NAME, content)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> WordFeatures:
        """Read what :meth:`save_pretrained` has written; warns if another jieba was installed then.

        Raises:
            ValueError: the file cannot be read or lacks something.
        """
        content = json.loads((Path(folder) / FILE_NAME).read_text(encoding="utf-8"))
        try:
            kinds, jieba, vocabularies = (content[key] for key in ("kinds", "jieba", "vocabularies"))
            gazetteer = content.get("gazetteer")
            _check(kinds, vocabularies, gazetteer)
            if gazetteer is not None:
                gazetteer = Gazetteer(gazetteer["entities"], gazetteer["occurrences"])
            features = cls(kinds, {kind: vocabularies[kind] for kind in COLUMNS if kind in vocabularies}, gazetteer)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{FILE_NAME} lacks or misnames something ({type(error).__name__}: {error})") from None
        if features._needs_jieba and jieba != jieba_version():
            logger.warning(
                f"{Path(folder) / FILE_NAME}: made with jieba {jieba}, but {jieba_version()} is installed, which may "
                f"find other words; install jieba=={jieba} to have the features of training"
            )
        return features

    @property
    def _needs_jieba(self):
        return any(kind in JIEBA_KINDS for kind in self.kinds)


def _check(kinds, vocabularies, gazetteer):
    """Raise ValueError unless the parts of the file have the form in which they are written."""
    for kind in (*kinds, *vocabularies):
        if not isinstance(kind, str):
            raise ValueError(f"the kind {kind!r} is not a name")
    for kind, values in vocabularies.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"the vocabulary {kind!r} is not a list of strings")
        if len(set(values)) < len(values):
            raise ValueError(f"the vocabulary {kind!r} has a value twice")
    if gazetteer is None:
        return
    occurrences = gazetteer["occurrences"]
    for kind, counts in {"occurrences": occurrences, **gazetteer["entities"]}.items():
        for string, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= occurrences.get(string, 0):
                raise ValueError(f"the gazetteer counts {string!r} as {kind} {count!r} times")
