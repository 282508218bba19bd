"""Strings that are entities in the training data, and how often."""

from collections import Counter

import ahocorasick

LONGEST_ENTITY = 20  # characters; longer ones rarely recur, and texts are read with this many characters around
# Bounds between the bins of a share: how many of the occurrences of a string are entities of a type.
SHARES = (0.3, 0.75)
BINS = len(SHARES) + 1


class Gazetteer:
    """Looks up the entities of the training data in a text. Threads may share it.

    Args:
        entities: dict from a type to a dict from a string to how often it is labeled as an entity of this type.
        occurrences: dict from each of these strings to how often it occurs in the training texts, labeled or not.
    """

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
        """Count the entities of a list of :class:`paddle_rope.tasks.ner.examples.Example`. A text that occurs several
        times counts once, because its copies would give its labels away."""
        by_text = {example.text: example for example in examples}
        entities = {}
        for example in by_text.values():
            for (string, kind), count in _own_entities(example).items():
                if len(string) <= LONGEST_ENTITY and is_storable(string):
                    entities.setdefault(kind, Counter())[string] += count
        strings = automaton_of(dict.fromkeys(string for of_kind in entities.values() for string in of_kind))
        occurrences = Counter(text[start:end] for text in by_text for start, end, _ in found_in(text, strings))
        return cls(entities, dict(occurrences))

    def __call__(self, text, own=None):
        """Places in a text where an entity of the training data occurs: list of (start, end, classes); a class is the
        type's number * ``BINS`` + the bin of its share. If the text is one of the training data, ``own`` is its
        :class:`~paddle_rope.tasks.ner.examples.Example`, whose entities and occurrences are left out of the counts:
        they would give its labels away."""
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


def is_storable(string):
    """Whether UTF-8 can hold the string: a lone surrogate cannot be written to a file."""
    return string.encode("utf-8", "replace").decode("utf-8") == string


def _own_entities(example):
    return Counter((example.text[entity.start : entity.end], entity.type) for entity in example.entities)
