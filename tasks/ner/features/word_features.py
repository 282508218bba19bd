"""Features of the tokens of a text, with the vocabularies and the gazetteer of the training data."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

import ahocorasick
import numpy as np

from paddle_rope.options import TEXT
from paddle_rope.tasks.common.files import write_json
from paddle_rope.tasks.ner.examples import Example
from paddle_rope.tasks.ner.features import token_features
from paddle_rope.tasks.ner.features.chinese_words import PLACES as WORD_PLACES
from paddle_rope.tasks.ner.features.chinese_words import Words, pairs_of
from paddle_rope.tasks.ner.features.jieba_dictionary import installed_words, jieba_version
from paddle_rope.tasks.ner.features.token_features import (
    COLUMNS,
    DICTIONARY_CLASSES,
    FIRST_VALUE,
    PLACES,
    TokenColumns,
    TokenFeatures,
)

FILE_NAME = "features.json"
SEGMENTED_KINDS = {"segmentation", "words"}
JIEBA_KINDS = {*SEGMENTED_KINDS, "dictionary"}
LONGEST_ENTITY = 20  # characters; longer ones rarely recur, and texts are read with this many characters around
# Bounds between the bins of a share: how many of the occurrences of a string are entities of a type.
SHARES = (0.3, 0.75)
BINS = len(SHARES) + 1
logger = logging.getLogger(__name__)


class WordFeatures:
    """Turns texts into :class:`TokenFeatures`. Threads may share it.

    ``vocabularies`` has the values of each kind in ``COLUMNS``; ``fixed_words`` go on after the vocabulary of
    words, and training leaves their vectors as they are; ``gazetteer`` is given if it is one of the kinds.
    """

    def __init__(self, kinds, vocabularies, gazetteer=None, fixed_words=()):
        self.kinds = token_features.check_kinds(kinds)
        self.vocabularies = vocabularies
        self.fixed_words = fixed_words
        self.gazetteer = gazetteer
        self._needs_jieba = not JIEBA_KINDS.isdisjoint(self.kinds)
        words = {"words": self.words} if "words" in vocabularies else {}
        self._columns = TokenColumns({**vocabularies, **words})
        self._first_gazetteer_class = ("dictionary" in self.kinds) * DICTIONARY_CLASSES
        self._classes = self._first_gazetteer_class + (gazetteer.num_classes if gazetteer else 0)

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[Example],
        kinds: Iterable[str],
        min_count: int = 3,
        unlabeled: Sequence[Example] = (),
        min_count_in_all: int = 20,
        known_words: Iterable[str] = (),
    ) -> WordFeatures:
        """Build vocabularies and gazetteer from the training data. Values that occur less often than ``min_count`` are
        unknown, unless ``examples`` and the ``unlabeled`` texts together have them ``min_count_in_all`` times. Those
        of the ``known_words``, which have vectors, that are not in the vocabulary become the fixed words."""
        counts: dict = {kind: (Counter(), Counter()) for kind in COLUMNS if kind in kinds}  # in examples; in all
        for number, example in enumerate((*examples, *unlabeled) if counts else ()):
            words = _words_of(example.text, counts)
            for kind, (of_examples, of_all) in counts.items():
                values = token_features.count_values(words, kind)
                of_all.update(values)
                if number < len(examples):
                    of_examples.update(values)
        vocabularies = {}
        for kind, (of_examples, of_all) in counts.items():
            values = sorted(
                value
                for value, count in of_all.items()
                if (of_examples[value] >= min_count or count >= min_count_in_all) and TEXT.fits(value)
            )
            is_tag = kind == "segmentation"
            vocabularies[kind] = [f"{place}-{tag}" for tag in values for place in WORD_PLACES] if is_tag else values
        gazetteer = Gazetteer.from_examples(examples) if "gazetteer" in kinds else None
        trained = set(vocabularies.get("words", ()))
        return cls(kinds, vocabularies, gazetteer, [word for word in known_words if word not in trained])

    @property
    def words(self) -> list[str]:
        """All words, in the order of their numbers: the vocabulary, then the fixed words."""
        return [*self.vocabularies.get("words", ()), *self.fixed_words]

    @property
    def sizes(self) -> dict:
        """Sizes that a model needs: ``{"tables": {kind: values with none and unknown}, "flags": number of flags}``, and
        if there are any, the number of ``"fixed_words"``."""
        tables = {kind: FIRST_VALUE + len(self.vocabularies[kind]) for kind in COLUMNS if kind in self.kinds}
        fixed = {"fixed_words": len(self.fixed_words)} if self.fixed_words else {}
        return {"tables": tables, "flags": self._classes * PLACES, **fixed}

    def __call__(
        self,
        text: str,
        offsets: list[tuple[int, int]],
        own: Optional[Example] = None,
        hinted: Iterable[tuple[int, int, str]] = (),
    ) -> TokenFeatures:
        """The features of a text. ``offsets`` are the half-open characters of each token, empty for special tokens.
        ``own`` is the text's example if it is in the training data: a text must not find its own labels in the
        gazetteer, because new texts will not find theirs. The (start, end, type) that are ``hinted`` at are flagged
        like strings of the gazetteer that are always entities."""
        words = _words_of(text, self.kinds)
        places = token_features.token_places(tuple(offsets), len(text))
        spans = token_features.dictionary_spans(words) if "dictionary" in self.kinds else []
        if self.gazetteer is not None:
            first = self._first_gazetteer_class
            found = self.gazetteer(text, own)
            spans += [(start, end, first + number) for start, end, numbers in found for number in numbers]
            strongest = {kind: first + number * BINS + BINS - 1 for number, kind in enumerate(self.gazetteer.types)}
            spans += [(start, end, strongest[kind]) for start, end, kind in hinted if kind in strongest]
        flags = token_features.span_flags(spans, self._classes, len(text), places)
        return TokenFeatures(self._columns(words, places), np.packbits(flags, axis=1), flags.shape[1])

    def save_pretrained(self, folder: str | os.PathLike) -> None:
        """Write ``features.json`` into a folder."""
        jieba = jieba_version() if self._needs_jieba else None
        content = {"kinds": list(self.kinds), "jieba": jieba, "vocabularies": self.vocabularies}
        content["fixed_words"] = self.fixed_words
        if self.gazetteer is not None:
            content["gazetteer"] = {name: getattr(self.gazetteer, name) for name in ("occurrences", "entities")}
        write_json(Path(folder) / FILE_NAME, content)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike) -> WordFeatures:
        """Read what :meth:`save_pretrained` has written; warns if another version of jieba is installed. Raises
        ValueError, KeyError, TypeError or AttributeError if the file is damaged, and InputError if the features need
        jieba, which is not installed."""
        content = json.loads((Path(folder) / FILE_NAME).read_text(encoding="utf-8"))
        kinds, jieba, vocabularies = (content[key] for key in ("kinds", "jieba", "vocabularies"))
        gazetteer = content.get("gazetteer")
        if gazetteer is not None:
            gazetteer = Gazetteer(gazetteer["entities"], _checked(gazetteer))
        vocabularies = {kind: vocabularies[kind] for kind in COLUMNS if kind in vocabularies}
        features = cls(kinds, vocabularies, gazetteer, content.get("fixed_words", ()))
        if features._needs_jieba and jieba != jieba_version():
            logger.warning(
                f"{Path(folder) / FILE_NAME}: made with jieba {jieba}, but {jieba_version()} is installed, "
                f"which may find other words; install jieba=={jieba} to have the features of training"
            )
        return features


def _words_of(text: str, kinds: Iterable[str]) -> Words:
    """The words of a text that the kinds need."""
    if JIEBA_KINDS.isdisjoint(kinds):
        return Words(text, pairs_of(text), {}, [])
    return installed_words()(text, segmented=not SEGMENTED_KINDS.isdisjoint(kinds))


def _checked(gazetteer):
    """The occurrences of a gazetteer; raises ValueError if a string is an entity more often than it occurs."""
    counted = gazetteer["occurrences"]
    for counts in (counted, *gazetteer["entities"].values()):
        for string, count in counts.items():
            if type(count) is not int or not 0 < count <= counted.get(string, 0):
                raise ValueError(f"the gazetteer counts {string!r} {count!r} times")
    return counted


# ---- strings that are entities in the training data


class Gazetteer:
    """Looks up the entities of the training data in a text. Threads may share it. ``entities`` is a dict from a type to
    a dict from a string to how often it is labeled as an entity of this type; ``occurrences`` a dict from each of these
    strings to how often it occurs in the training texts, labeled or not."""

    def __init__(self, entities, occurrences):
        self.entities = entities
        self.occurrences = occurrences
        self.types = sorted(entities)
        self.num_classes = len(self.types) * BINS
        self._types_of = {}
        for number, kind in enumerate(self.types):
            for string, count in entities[kind].items():
                self._types_of.setdefault(string, []).append((number, kind, count))
        nothing: Counter = Counter()
        self._strings = automaton_of({string: self._classes_of(string, nothing, nothing) for string in self._types_of})

    @classmethod
    def from_examples(cls, examples):
        """Count the entities of a list of ``Example``. A text that occurs several times counts once, because its copies
        would give its labels away."""
        by_text = {example.text: example for example in examples}
        entities = {}
        for example in by_text.values():
            for (string, kind), count in _own_entities(example).items():
                if len(string) <= LONGEST_ENTITY and TEXT.fits(string):
                    entities.setdefault(kind, Counter())[string] += count
        strings = automaton_of(dict.fromkeys(string for of_kind in entities.values() for string in of_kind))
        occurrences = Counter(text[start:end] for text in by_text for start, end, _ in found_in(text, strings))
        return cls(entities, dict(occurrences))

    def __call__(self, text, own=None):
        """Places in a text where an entity of the training data occurs: list of (start, end, classes); a class is the
        type's number * ``BINS`` + the bin of its share. If the text is one of the training data, ``own`` is its
        ``Example``, whose entities and occurrences are left out of the counts: they would give its labels away."""
        places = list(found_in(text, self._strings))
        if own is None:
            return places
        own_counts = _own_entities(own), Counter(text[start:end] for start, end, _ in places)
        return [(start, end, self._classes_of(text[start:end], *own_counts)) for start, end, _ in places]

    def _classes_of(self, string, own_entities, own_occurrences):
        """The classes of a string, not counting the entities and occurrences of the example itself."""
        total = self.occurrences[string] - own_occurrences[string]
        classes = []
        for number, kind, count in self._types_of[string]:
            count -= own_entities[string, kind]
            if 0 < count <= total:  # copies of a text may be labeled differently
                share = count / total
                classes.append(number * BINS + sum(share >= bound for bound in SHARES))
        return classes


def automaton_of(strings):
    """An automaton that finds strings, the keys of a dict; for :func:`found_in`."""
    automaton = ahocorasick.Automaton()
    for string, value in strings.items():
        automaton.add_word(string, (len(string), value))
    automaton.make_automaton()
    return automaton


def found_in(text, automaton):
    """Yield (start, end, value) of all places in a text where a string of an automaton occurs."""
    for last, (length, value) in automaton.iter(text) if len(automaton) else ():
        yield last + 1 - length, last + 1, value


def _own_entities(example):
    return Counter((example.text[entity.start : entity.end], entity.type) for entity in example.entities)
