"""Word features as they are defined, slowly: jieba's own tagger, and strings instead of numbers."""

import functools
import logging

import numpy as np

from paddle_rope.tasks.ner.features import COLUMNS
from paddle_rope.tasks.ner.features.chinese_words import TAG_CLASSES, tag_class
from paddle_rope.tasks.ner.features.word_features import BINS, SHARES

LONGEST = 16  # characters of a word in jieba's dictionary


def same(first, second):
    """Whether two tuples of arrays are equal."""
    return all(map(np.array_equal, first, second))


@functools.cache
def tagger():
    """jieba's tagger, with its dictionary read from its own file, not from its cache in the temporary folder."""
    import jieba.posseg

    logging.getLogger("jieba").setLevel(logging.WARNING)
    cutter = jieba.Tokenizer()
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return jieba.posseg.POSTokenizer(cutter)


def segmentation(text):
    """(start, end, part of speech) of jieba's words."""
    words, end = [], 0
    for word, tag in tagger().cut(text):
        start, end = end, end + len(word)
        words.append((start, end, tag))
    return words


def dictionary(text):
    """(start, end, part of speech) of all words of jieba's dictionary with two or more characters."""
    frequencies, tags = tagger().tokenizer.FREQ, tagger().word_tag_tab
    return [
        (start, end, tags[text[start:end]])
        for start in range(len(text))
        for end in range(start + 2, min(start + LONGEST, len(text)) + 1)
        if frequencies.get(text[start:end])
    ]


def plain_columns(features, text, offsets):
    """int32 ``[tokens, columns]``."""
    words, found = segmentation(text), dictionary(text)
    covering = {at: word for word in words for at in range(*word[:2])}
    beginning = {start: text[start:end] for start, end, _ in sorted(found)}
    ending = {end: text[start:end] for start, end, _ in sorted(found, reverse=True)}

    def values(kind, start, end):
        if kind == "bigrams":
            return [start and text[start - 1 : start + 1], end < len(text) and text[end - 1 : end + 1]]
        first, last = covering[start], covering[end - 1]
        if kind == "words":
            return [text[first[0] : first[1]], beginning.get(start), ending.get(end)]
        begins, ends = first[0] == start, last[1] == end
        return [("S" if begins and ends else "B" if begins else "E" if ends else "M") + "-" + first[2]]

    rows = []
    for start, end in offsets:
        row = []
        for kind in COLUMNS:
            if kind in features.kinds:
                of_token = values(kind, start, end) if end > start else [None] * COLUMNS[kind]
                known = features.words if kind == "words" else features.vocabularies[kind]
                row += [(known.index(value) + 2 if value in known else 1) if value else 0 for value in of_token]
        rows.append(row)
    return np.array(rows, dtype=np.int32)


def plain_flags(features, text, offsets, own=None):
    """bool ``[tokens, flags]``."""
    spans, classes = [], 0
    if "dictionary" in features.kinds:
        classes = len(TAG_CLASSES) * 3
        spans += [(start, end, tag_class(tag) * 3 + min(end - start, 4) - 2) for start, end, tag in dictionary(text)]
    if features.gazetteer:
        spans += [(start, end, classes + kind) for start, end, kind in _gazetteer_spans(features.gazetteer, text, own)]
        classes += len(features.gazetteer.types) * BINS
    flags = np.zeros([len(offsets), classes, 3], dtype=bool)
    for token, (start, end) in enumerate(offsets):
        for first, stop, kind in spans:
            if end > start:
                flags[token, kind, 0] |= first == start
                flags[token, kind, 2] |= stop == end
    for kind in range(classes):  # inside one of the spans with its first character, and with its last
        inside = {at for first, stop, number in spans if number == kind for at in range(first + 1, stop - 1)}
        flags[:, kind, 1] = [end > start and start in inside and end - 1 in inside for start, end in offsets]
    return flags.reshape(len(offsets), classes * 3)


def _gazetteer_spans(gazetteer, text, own):
    found = ((at, one) for one in gazetteer.occurrences for at in range(len(text)) if text.startswith(one, at))
    places = [(at, at + len(one)) for at, one in found]
    for start, end in places:
        string = text[start:end]
        own_entities = own.entities if own else ()
        total = gazetteer.occurrences[string] - (sum(text[a:b] == string for a, b in places) if own else 0)
        for number, kind in enumerate(gazetteer.types):
            count = gazetteer.entities[kind].get(string, 0)
            count -= sum(entity.type == kind and text[entity.start : entity.end] == string for entity in own_entities)
            if count > 0:
                yield start, end, number * BINS + sum(count / total >= share for share in SHARES)
