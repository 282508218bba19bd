"""What labeled data looks like, and what in it is suspicious: counts, lengths, duplicates, spans.

Nothing here is an error. Data that cannot be read at all stops in the reader.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from itertools import pairwise

from paddle_rope.roformer import CharTokenizer
from tasks.common.texts.text_files import shown
from tasks.ner.arguments import NerArguments
from tasks.ner.data.overlaps import overlapping_pairs
from tasks.ner.examples import Example, TokenizedText, align_entities, entity_types
from tasks.ner.lengths import entity_bound, training_lengths

MAX_CHARACTERS = NerArguments.max_characters
# name -> what was found; in the order of printing
FINDINGS = {
    "leaked_text_other_labels": "texts of an earlier split, labeled otherwise",
    "leaked_text": "texts of an earlier split, labeled the same",
    "duplicate_text_other_labels": "texts repeated in the split, labeled otherwise",
    "duplicate_text": "texts repeated in the split, labeled the same",
    "blank_text": "empty texts, or only white space",
    "long_text": (
        f"texts of more than max_characters, which is {MAX_CHARACTERS} unless given: configs/ner/own_data.yaml cuts "
        "them into windows; other training takes them with --cut_long_texts true, or with a larger --max_characters"
    ),
    "control_characters": "texts with control characters or U+FFFD",
    "unaligned": "entities that start or end inside a token: they cannot be learned",
    "white_space_edge": "entities with white space at an edge",
    "punctuation_edge": "entities with punctuation at an edge (brackets in pairs excepted)",
    "two_types": "spans with two types at once",
    "crossing": "entities that overlap an earlier one in part",
    "nested": "entities inside another: GlobalPointer finds them, tags cannot hold them",
    "surface_of_two_types": "entities whose text has another type elsewhere",
    "long_entity": "entities longer than 99 % of all",
}
_HARMLESS_CONTROLS = "\t\n"
_BRACKETS = dict(zip("《〈“‘（(「『【〔[{<\"'", "》〉”’）)」』】〕]}>\"'"))


def inspect(splits: dict[str, list[Example]], max_examples: int = 5) -> dict:
    """Count and search labeled data.

    Args:
        splits: dict from a name to examples, in the order train, dev, test; the tokens are those of a
            :class:`paddle_rope.CharTokenizer` of the first.
        max_examples: examples kept of each finding.

    Returns:
        dict that can be written as JSON: ``splits`` (counts, ``types``, ``text_lengths``, ``entity_lengths``),
        ``lengths`` (``window_tokens``, ``longest_text``, ``longest_entity``, ``max_entity_tokens``: tokens that a model
        trained on the first split reads, saw and finds), ``missing_types`` (split -> types that others have) and
        ``findings`` (name -> ``meaning``, ``counts`` by split, ``examples`` of ``where`` and ``what``), with the names
        of ``FINDINGS``.
    """
    found = _Findings(splits, max_examples)
    for name, examples in splits.items():
        for example in examples:
            _search_text(found, name, example)
            _search_spans(found, name, example)
    lengths = _search_tokens(found, splits)
    _search_long_texts(found, splits)
    _search_duplicates(found, splits)
    _search_surfaces(found, splits)
    _search_long_entities(found, splits)
    types = entity_types(*splits.values())
    return {
        "splits": {name: _summary(examples, types) for name, examples in splits.items()},
        "lengths": lengths,
        "missing_types": {name: sorted(set(types) - set(entity_types(examples))) for name, examples in splits.items()},
        "findings": found,
    }


class _Findings(dict):
    """What :func:`inspect` returns as ``findings``, as it fills up."""

    def __init__(self, splits, max_examples):
        self.max_examples = max_examples
        for name, meaning in FINDINGS.items():
            self[name] = {"meaning": meaning, "counts": dict.fromkeys(splits, 0), "examples": []}

    def add(self, name, split, example, what, count=1):
        self[name]["counts"][split] += count
        if len(self[name]["examples"]) < self.max_examples:
            self[name]["examples"].append({"where": example.where, "what": what})


def _summary(examples, types):
    counts = Counter(entity.type for example in examples for entity in example.entities)
    return {
        "texts": len(examples),
        "texts_without_entities": sum(not example.entities for example in examples),
        "characters": sum(len(example.text) for example in examples),
        "entities": sum(counts.values()),
        "types": {type_: counts[type_] for type_ in types},
        "text_lengths": length_distribution([len(example.text) for example in examples]),
        "entity_lengths": length_distribution(
            [entity.end - entity.start for example in examples for entity in example.entities]
        ),
    }


def length_distribution(lengths):
    """min, median, p95, p99, max and a histogram [[shortest, longest, count], ...] by doubling; None if empty."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    histogram = []
    low, high = 0, 4
    while low <= ordered[-1]:
        histogram.append([low, high, sum(low <= length <= high for length in ordered)])
        low, high = high + 1, 2 * high
    while histogram[0][2] == 0:
        del histogram[0]
    quantiles = {name: quantile(ordered, share) for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))}
    return {"min": ordered[0], **quantiles, "max": ordered[-1], "histogram": histogram}


def quantile(ordered, share):
    """The smallest of the ordered values that at least ``share`` of them do not exceed."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def _search_text(found, split, example):
    text = example.text
    if not text.strip():
        found.add("blank_text", split, example, shown(text))
    place = next((place for place, character in enumerate(text) if _is_control(character)), None)
    if place is not None:
        around = shown(text[max(place - 8, 0) : place + 8])
        found.add("control_characters", split, example, f"U+{ord(text[place]):04X} at {place} in {around}")


def _is_control(character):
    if character.isprintable():  # fast, and False for every control character
        return character == "\ufffd"
    return unicodedata.category(character) == "Cc" and character not in _HARMLESS_CONTROLS


def _search_spans(found, split, example):
    entities = example.entities
    for entity in entities:
        surface = example.surface(entity)
        if surface != surface.strip():
            found.add("white_space_edge", split, example, example.described(entity))
        elif _has_punctuation_edge(surface):
            found.add("punctuation_edge", split, example, example.described(entity))
    for one, other in pairwise(entities):
        if one[:2] == other[:2]:
            found.add("two_types", split, example, example.described(one, other))
    nested, crossing = overlapping_pairs(entities)
    for inner, outer in nested:
        found.add("nested", split, example, f"{example.described(inner)} in {example.described(outer)}")
    for one, earlier in crossing:
        found.add("crossing", split, example, example.described(earlier, one))


def _has_punctuation_edge(surface):
    """Whether the first or last character is punctuation, other than a bracket whose partner is in the surface."""
    first, last = surface[0], surface[-1]
    opens = _BRACKETS.get(first, "") in surface[1:] and first in _BRACKETS
    closes = any(closing == last and opening in surface[:-1] for opening, closing in _BRACKETS.items())
    return (_is_punctuation(first) and not opens) or (_is_punctuation(last) and not closes)


def _is_punctuation(character):
    return unicodedata.category(character).startswith("P")


def _search_tokens(found, splits):
    """Searches entities that are not of whole tokens; returns the lengths in tokens of the first split."""
    tokenizer = CharTokenizer.from_corpus(example.text for example in next(iter(splits.values())))
    texts = []  # of the first split
    for number, (split, examples) in enumerate(splits.items()):
        for example in examples:
            ids, offsets, _ = tokenizer.encode(example.text)
            aligned, unaligned = align_entities(example.entities, offsets)
            for entity in unaligned:
                found.add("unaligned", split, example, example.described(entity))
            if not number:
                texts.append(TokenizedText(ids, offsets, [(0, first, last) for _, first, last in aligned]))
    lengths = training_lengths(texts)
    return {**lengths._asdict(), "max_entity_tokens": entity_bound(lengths.longest_entity)}


def _search_long_texts(found, splits):
    split, examples = next(iter(splits.items()))
    for example in sorted(examples, key=lambda example: -len(example.text)):
        if len(example.text) > MAX_CHARACTERS:
            found.add("long_text", split, example, f"{len(example.text)} characters: {shown(example.text, 40)}")


def _search_duplicates(found, splits):
    first_of = {}  # text -> (split, example) of its first occurrence
    for split, examples in splits.items():
        for example in examples:
            first_split, first = first_of.setdefault(example.text, (split, example))
            if first is example:
                continue
            name = "duplicate_text" if first_split == split else "leaked_text"
            what = f"as {first.where}: {shown(example.text, 40)}"
            if first.entities != example.entities:
                name += "_other_labels"
                differ = sorted(set(first.entities) ^ set(example.entities))[0]
                place = "here" if differ in example.entities else "there"
                what = f"{what}; only {place} {example.described(differ)}"
            found.add(name, split, example, what)


def _search_surfaces(found, splits):
    types_of = defaultdict(Counter)  # surface -> how often it has each type
    for _, example, entity in _entities(splits):
        types_of[example.surface(entity)][entity.type] += 1
    rare_places = {}  # surface -> first place of its rarest type
    for split, example, entity in _entities(splits):
        surface = example.surface(entity)
        counts = types_of[surface]
        if len(counts) > 1:
            found["surface_of_two_types"]["counts"][split] += 1
            if counts[entity.type] == min(counts.values()):
                rare_places.setdefault(surface, (split, example))
    # first what is most likely wrong: a type that is rare for a frequent text
    for surface in sorted(rare_places, key=lambda s: min(types_of[s].values()) / max(types_of[s].values())):
        split, example = rare_places[surface]
        counts = ", ".join(f"{type_} {count}" for type_, count in types_of[surface].most_common())
        found.add("surface_of_two_types", split, example, f"{shown(surface, 40)} is {counts}", count=0)


def _search_long_entities(found, splits):
    ordered = sorted(_entities(splits), key=lambda item: item[2].start - item[2].end)
    if ordered:
        lengths = [entity.end - entity.start for _, _, entity in ordered]
        limit = quantile(lengths[::-1], 0.99)
        for length, (split, example, entity) in zip(lengths, ordered):
            if length > limit:
                found.add("long_entity", split, example, f"{length} characters: {example.described(entity)}")


def _entities(splits):
    """(split, example, entity) of all of them."""
    return ((split, example, entity) for split in splits for example in splits[split] for entity in example.entities)
