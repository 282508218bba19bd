"""Features with a value for each token: place in a word, bigrams, words.

A token may have several characters. What is said of beginnings then holds for its first one, what is said of ends for
its last one. Special tokens, whose offsets are empty, have no values.
"""

from collections import Counter

PLACES = "BMES"  # begin, middle and end of a word, or all of it


def token_columns(analysis, offsets, kind):
    """Values of a kind.

    Args:
        analysis: :class:`~tasks.ner.features.analysis.Analysis` of the text.
        offsets: half-open characters of each token.
        kind: a key of :data:`~tasks.ner.features.kinds.COLUMNS`.

    Returns:
        For each column of the kind a list of strings, one for each token, None where there is no value.
    """
    return [[end > start and value(analysis, start, end) or None for start, end in offsets] for value in _VALUES[kind]]


def count_values(analysis, kind):
    """How often each value of a kind occurs in a text, a Counter; for ``"segmentation"`` each part of speech."""
    text = analysis.text
    if kind == "segmentation":
        return Counter(word.tag for word in analysis.segmentation)
    if kind == "bigrams":
        return Counter(text[start : start + 2] for start in range(len(text) - 1))
    places = {(word.start, word.end) for word in analysis.segmentation}
    places.update(analysis.longest_beginning.items())
    places.update((start, end) for end, start in analysis.longest_ending.items())
    return Counter(text[start:end] for start, end in places)


def segmentation_values(tags):
    """All values of ``"segmentation"`` with the given parts of speech."""
    return [f"{place}-{tag}" for tag in tags for place in PLACES]


def _place_in_word(analysis, start, end):
    first, last = analysis.covering[start], analysis.covering[end - 1]
    if first is None:
        return None
    begins, ends = first.start == start, last is not None and last.end == end
    return f"{'S' if begins and ends else 'B' if begins else 'E' if ends else 'M'}-{first.tag}"


def _left_bigram(analysis, start, end):
    return analysis.text[start - 1 : start + 1] if start else None


def _right_bigram(analysis, start, end):
    return analysis.text[end - 1 : end + 1] if end < len(analysis.text) else None


def _covering_word(analysis, start, end):
    word = analysis.covering[start]
    return word and analysis.text[word.start : word.end]


def _word_that_begins(analysis, start, end):
    return analysis.text[start : analysis.longest_beginning.get(start, start)]


def _word_that_ends(analysis, start, end):
    return analysis.text[analysis.longest_ending.get(end, end) : end]


_VALUES = {
    "segmentation": (_place_in_word,),
    "bigrams": (_left_bigram, _right_bigram),
    "words": (_covering_word, _word_that_begins, _word_that_ends),
}
