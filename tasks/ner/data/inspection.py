"""A summary of labeled data, and suspicious places in it: counts, lengths, duplicates, spans.

Nothing here is an error: the reader already rejects data that cannot be read.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from paddle_rope.roformer import CharTokenizer
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import INSIDE_A_TOKEN, NerDataset
from paddle_rope.tasks.ner.examples import Example, entity_types
from paddle_rope.tasks.ner.lengths import entity_bound, training_lengths

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
}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")  # except tabs and line ends
_BRACKETS = dict(zip("《〈“‘（(「『【〔[{<\"'", "》〉”’）)」』】〕]}>\"'"))
Splits = dict[str, list[Example]]
Found = Iterator[tuple[str, str, Example, str | None]]  # name, split, example, text to show


def inspect(splits: Splits, max_examples: int = 5) -> dict:
    """Summarize and search labeled data: ``splits`` maps names to examples, in the order train, dev, test.

    The dict can be written as JSON: ``splits`` (counts, ``types``, ``relations``, ``text_lengths``, ``entity_lengths``,
    and ``relation_lengths``, the characters from the first of two related entities to the last), ``lengths``
    (``window_tokens``, ``longest_text``, ``longest_entity``, ``max_entity_tokens``, in tokens, of a model trained on
    the first split), ``missing_types`` (split -> types that only others have) and ``findings`` (name -> ``meaning``,
    ``counts`` by split, some ``examples`` of ``where`` and ``what``).
    """
    findings = {
        name: {"meaning": meaning, "counts": dict.fromkeys(splits, 0), "examples": []}
        for name, meaning in FINDINGS.items()
    }
    tokenizer = CharTokenizer.from_corpus(example.text for example in next(iter(splits.values())))
    types = entity_types(*splits.values())
    datasets = {split: NerDataset(examples, tokenizer, types) for split, examples in splits.items()}
    for found in (_in_texts(datasets), _long_texts(splits), _duplicates(splits), _surfaces_of_two_types(splits)):
        for name, split, example, what in found:
            findings[name]["counts"][split] += 1
            if what is not None and len(findings[name]["examples"]) < max_examples:
                findings[name]["examples"].append({"where": example.where, "what": what})
    lengths = training_lengths(next(iter(datasets.values())).texts)
    return {
        "splits": {name: _summary(examples, types) for name, examples in splits.items()},
        "lengths": {**lengths._asdict(), "max_entity_tokens": entity_bound(lengths.longest_entity)},
        "missing_types": {name: sorted(set(types) - set(entity_types(examples))) for name, examples in splits.items()},
        "findings": findings,
    }


def _summary(examples, types):
    entities = [entity for example in examples for entity in example.entities]
    counts = Counter(entity.type for entity in entities)
    return {
        "texts": len(examples),
        "texts_without_entities": sum(not example.entities for example in examples),
        "characters": sum(len(example.text) for example in examples),
        "entities": len(entities),
        "types": {type_: counts[type_] for type_ in types},
        "relations": dict(sorted(Counter(one.type for example in examples for one in example.relations).items())),
        "text_lengths": length_distribution([len(example.text) for example in examples]),
        "entity_lengths": length_distribution([entity.end - entity.start for entity in entities]),
        "relation_lengths": length_distribution([length for example in examples for length in _reached(example)]),
    }


def _reached(example):
    """The characters from the first one of each two related entities to the last one."""
    for one in example.relations:
        ends = example.entities[one.head], example.entities[one.tail]
        yield max(end.end for end in ends) - min(end.start for end in ends)


def length_distribution(lengths):
    """min, median, p95, p99 and max, nearest-rank quantiles; None if empty."""
    if not lengths:
        return None
    quantiles = np.quantile(lengths, (0, 0.5, 0.95, 0.99, 1), method="inverted_cdf")
    return dict(zip(("min", "median", "p95", "p99", "max"), quantiles.tolist()))


# ---- searches


def _in_texts(datasets: dict[str, NerDataset]) -> Found:
    """Findings within one text."""
    for split, dataset in datasets.items():
        for example, entity in dataset.faults[INSIDE_A_TOKEN]:
            yield "unaligned", split, example, example.described(entity)
        for example in dataset.examples:
            for name, what in (*_of_text(example.text), *_of_spans(example)):
                yield name, split, example, what


def _of_text(text):
    if not text.strip():
        yield "blank_text", shown(text)
    if control := _CONTROL.search(text):
        around = shown(text[max(control.start() - 8, 0) : control.start() + 8])
        yield "control_characters", f"U+{ord(control[0]):04X} at {control.start()} in {around}"


def _of_spans(example):
    entities, described = example.entities, example.described
    for entity in entities:
        surface = example.surface(entity)
        if surface != surface.strip():
            yield "white_space_edge", described(entity)
        elif _has_punctuation_edge(surface):
            yield "punctuation_edge", described(entity)
    for one, other in pairwise(entities):
        if one[:2] == other[:2]:
            yield "two_types", described(one, other)
    # each entity with the previous one, and with the previous one that ends last
    furthest = None
    for before, entity in pairwise(sorted(entities, key=lambda one: (one.start, -one.end, one.type))):
        furthest = before if furthest is None or before.end > furthest.end else furthest
        if entity.end <= furthest.end and entity[:2] != furthest[:2]:
            yield "nested", f"{described(entity)} in {described(furthest)}"
        crossed = (one for one in (before, furthest) if one.start < entity.start < one.end < entity.end)
        if (one := next(crossed, None)) is not None:
            yield "crossing", described(one, entity)


def _has_punctuation_edge(surface):
    """Whether the first or last character is punctuation, other than a bracket whose partner is in the surface."""
    first, last = surface[0], surface[-1]
    opens = _BRACKETS.get(first, "") in surface[1:] and first in _BRACKETS
    closes = any(closing == last and opening in surface[:-1] for opening, closing in _BRACKETS.items())
    of_first, of_last = (unicodedata.category(edge).startswith("P") for edge in (first, last))
    return (of_first and not opens) or (of_last and not closes)


def _long_texts(splits: Splits) -> Found:
    split, examples = next(iter(splits.items()))
    for example in sorted(examples, key=lambda example: -len(example.text)):
        if len(example.text) > MAX_CHARACTERS:
            yield "long_text", split, example, f"{len(example.text)} characters: {shown(example.text, 40)}"


def _duplicates(splits: Splits) -> Found:
    first_of: dict[str, tuple[str, Example]] = {}  # text -> (split, example) of its first occurrence
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
            yield name, split, example, what


def _surfaces_of_two_types(splits: Splits) -> Found:
    """Sorted by how likely they are wrong, rare types of frequent surfaces first. One entity is shown per surface."""
    types_of = defaultdict(Counter)  # surface -> how often it has each type
    entities = [(split, one, entity) for split in splits for one in splits[split] for entity in one.entities]
    for _, example, entity in entities:
        types_of[example.surface(entity)][entity.type] += 1
    rarity = {text: min(n.values()) / max(n.values()) for text, n in types_of.items() if len(n) > 1}
    of_two = [found for found in entities if found[1].surface(found[2]) in rarity]
    for split, example, entity in sorted(of_two, key=lambda found: rarity[found[1].surface(found[2])]):
        surface, what = example.surface(entity), None
        counts = types_of[surface]
        if counts and counts[entity.type] == min(counts.values()):
            what = f"{shown(surface, 40)} is {', '.join(f'{kind} {count}' for kind, count in counts.most_common())}"
            types_of[surface] = Counter()  # already shown
        yield "surface_of_two_types", split, example, what
