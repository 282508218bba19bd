"""The words of a text that are in jieba's dictionary, and its segmentation as by ``jieba.posseg``."""

import functools
import re
from typing import NamedTuple

import numpy as np

PLACES = "BMES"  # beginning, middle and end of a word, or a word of one character
# Groups of jieba's parts of speech: the first two letters decide, else the first letter, else "x".
TAG_CLASSES = ("nr", "ns", "nt", "nz", "n", "v", "a", "i", "m", "t", "s", "j", "x")
_SAME_CLASS = {"b": "a", "z": "a", "l": "i", "q": "m", "f": "s"}
# Blocks that jieba looks up in its dictionary; elsewhere each character is a word.
_PIECE = re.compile("(?P<block>[\u4e00-\u9fd5a-zA-Z0-9+#&._]+)|\r\n|.", re.DOTALL)
# Runs of unknown words in a block: only Chinese ones are cut; numbers, foreign words and symbols are words already.
_RUN = re.compile("(?P<chinese>[\u4e00-\u9fd5]+)|(?P<m>[.0-9]+)|(?P<eng>[a-zA-Z0-9]+)|(?P<x>[+#&_]+)")
_LEAST = float("-inf")
_NO_SINGLE = (_LEAST, "x")


# ---- pairs of neighboring characters as numbers, looked up for a whole text at once: a search in one small array
# misses the processor's cache less often than a lookup of each string in a dictionary


def pair_numbers(first, second):
    """A number for each pair of code points from ``first`` and ``second``, int64 of the same shape."""
    return first.astype(np.int64) << 32 | second


def pairs_of(text):
    """The pair number of each character of a text and the next one, int64 ``[characters - 1]``."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return pair_numbers(codes[:-1], codes[1:])


class PairTable:
    """Maps pairs of characters to integers. ``pairs`` are distinct pair numbers, or strings of two characters,
    ``values`` has an integer for each of them, and all other pairs get ``other``."""

    def __init__(self, pairs, values, other):
        if not isinstance(pairs, np.ndarray):
            pairs = pairs_of("".join(pairs))[::2]
        order = pairs.argsort(kind="stable")
        self._pairs = np.append(pairs[order], np.iinfo(np.int64).max)  # above all pairs: a search ends in the array
        self._values = np.append(np.array(values, dtype=np.int32)[order], np.int32(other))

    def __call__(self, pairs):
        """The values of an array of pairs, int32 of its shape."""
        places = self._pairs.searchsorted(pairs)
        places[self._pairs[places] != pairs] = -1
        return self._values[places]


# ---- words


class Words(NamedTuple):
    """The words of a text."""

    text: str
    pairs: np.ndarray  # of :func:`pairs_of`
    # dictionary words of two or more characters, including overlapping ones: from the index of a word's first character
    # to a list of (end, (score, part of speech)), both in ascending order
    dictionary: dict
    segmentation: list  # (start, end, part of speech) of consecutive words that cover the text


class ChineseWords:
    """Finds words in texts as jieba does. Threads may share it. ``arrays`` come from ``read_dictionary``, ``tables``
    are arguments of :class:`UnknownWords`."""

    def __init__(self, arrays, tables):
        # The children of a node are consecutive in a string: from its first child to the first child of the next node.
        # Single numbers are read faster from a memoryview than from an array.
        first_child = np.append(0, np.cumsum(arrays["node_children"].astype(np.int32), dtype=np.int32)) + 1
        self._first_child = first_child.data
        self._characters = arrays["node_characters"].astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        self._entries_of = memoryview(arrays["node_entries"])
        scores, is_word, tags = (arrays[f"entry_{name}"].tolist() for name in ("scores", "is_word", "tags"))
        # (score, part of speech) of the entries that are words, else None
        self._entries = [pair if counts else None for pair, counts in zip(zip(scores, tags), is_word)]
        self._unknown_score = scores[0]
        # score and part of speech of each character that a word begins with
        self._singles = {
            self._characters[node]: (scores[entry] if is_word[entry] else _LEAST, tags[entry])
            for node, entry in enumerate(arrays["node_entries"][1 : first_child[1]].tolist(), 1)
        }
        first_pair = first_child[1]  # nodes of two characters end before the first node of three
        firsts, seconds = slice(1, first_pair), np.arange(first_pair, first_child[first_pair])
        first_characters = np.repeat(arrays["node_characters"][firsts], arrays["node_children"][firsts])
        pairs = pair_numbers(first_characters, arrays["node_characters"][seconds])
        self._pair_nodes = PairTable(pairs, seconds, 0)
        self._unknown_words = UnknownWords(*tables)

    def __call__(self, text, segmented=True):
        """The :class:`Words` of a text; their segmentation is empty unless ``segmented``."""
        pairs = pairs_of(text)
        dictionary = self._find(text, pairs)
        return Words(text, pairs, dictionary, self._segment(text, dictionary) if segmented else [])

    def _find(self, text, pairs):
        first_child, entries_of, entries = self._first_child, self._entries_of, self._entries
        child, size = self._characters.find, len(text)
        nodes = self._pair_nodes(pairs)
        starts = nodes.nonzero()[0]
        found = {}
        for start, node in zip(starts.tolist(), nodes[starts].tolist()):
            end, words = start + 2, []
            while node >= 0:
                entry = entries[entries_of[node]]
                if entry:
                    words.append((end, entry))
                if end == size:
                    break
                node = child(text[end], first_child[node], first_child[node + 1])
                end += 1
            if words:
                found[start] = words
        return found

    def _segment(self, text, found):
        words: list = []
        for piece in _PIECE.finditer(text):
            start, stop = piece.span()
            if piece.lastgroup is None:
                words.append((start, stop, "x"))
                continue
            chosen = self._most_probable(text, start, stop, found)
            singles = end = start  # from singles to end, single characters
            while end < stop:
                word = chosen[end]
                if word is None:
                    end += 1
                    continue
                if singles < end:
                    self._segment_singles(text, singles, end, found, words)
                words.append((end, word[0], word[1][1]))
                singles = end = word[0]
            if singles < stop:
                self._segment_singles(text, singles, stop, found, words)
        return words

    def _most_probable(self, text, start, stop, found):
        """For each character the first word of the most probable segmentation from there; None: the character alone."""
        chosen = {}
        scores = {stop: 0.0}
        score = 0.0
        single, words_of, unknown_score = self._singles.get, found.get, self._unknown_score
        for place in range(stop - 1, start - 1, -1):
            best, choice = single(text[place], _NO_SINGLE)[0] + score, None
            for word in words_of(place, ()):
                end, entry = word
                if end > stop:
                    break
                score = entry[0] + scores[end]
                if score >= best:
                    best, choice = score, word
            if best == _LEAST:  # neither the character nor a word that begins with it is in the dictionary
                best = unknown_score + scores[place + 1]
            scores[place] = score = best
            chosen[place] = choice
        return chosen

    def _segment_singles(self, text, start, stop, found, words):
        """Append the words of ``text[start:stop]``, a run of characters that no chosen dictionary word covers."""
        if stop - start == 1 or any(end == stop for end, _ in found.get(start, ())):
            words += [(at, at + 1, self._singles.get(text[at], _NO_SINGLE)[1]) for at in range(start, stop)]
            return
        for run in _RUN.finditer(text, start, stop):
            if run.lastgroup != "chinese":
                words.append((*run.span(), run.lastgroup))
                continue
            end = run.start()
            for length, tag in self._unknown_words.cut(run.group()):
                words.append((end, end + length, tag))
                end += length


@functools.cache
def tag_class(tag):
    """Index in ``TAG_CLASSES`` of the group of a part of speech."""
    names = (tag[:2], _SAME_CLASS.get(tag[:1], tag[:1]), "x")
    return TAG_CLASSES.index(next(name for name in names if name in TAG_CLASSES))


UNSEEN = -3.14e100  # logarithm of the probability of a character that a state never emits
MAX_REMEMBERED = 1 << 14  # strings whose words are kept for the next text


class UnknownWords:
    """Cuts strings of Chinese characters exactly as ``jieba.posseg`` does, even at ties. Threads may share it.

    The tables are jieba's dicts: the states, (place in a word, part of speech), of each known character; and for each
    state the log probabilities of starting in it, of its transitions, and of emitting each character.
    """

    def __init__(self, states_of, start, transitions, emissions):
        states = sorted(transitions, reverse=True)  # jieba chooses the first of equally probable states
        self._states, self._number = states, {state: number for number, state in enumerate(states)}
        # The part of speech of the word that continues after a state, and before it; None between words.
        self._after = [None if place in "ES" else tag for place, tag in states]
        self._before = [None if place in "BS" else tag for place, tag in states]
        self._start = [start[state] for state in states]
        self._transitions = [[transitions[one].get(other, _LEAST) for other in states] for one in states]
        self._states_of, self._emissions = states_of, emissions
        self._of_known = functools.cache(lambda char: self._emitted(char, states_of[char]))
        self.cut = functools.lru_cache(MAX_REMEMBERED)(self._words)

    def _words(self, string):
        """The words that cover a string: a tuple of (length, part of speech)."""
        words, start = [], 0
        path = self._path(string)
        for end, state in enumerate(path, 1):
            if self._after[state] is None or end == len(string):
                words.append((end - start, self._states[path[start] if self._after[state] else state][1]))
                start = end
        return tuple(words)

    def _path(self, string):
        """The numbers of the most probable states of the characters (Viterbi)."""
        scores = {state: self._start[state] + emitted for state, emitted in self._observed(string[0])}
        steps = []
        for char in string[1:]:
            following, came_from = self._step(scores, self._observed(char))
            if not following:  # none of its states can follow, so any state may
                following, came_from = self._step(scores, self._emitted(char, self._states))
            steps.append(came_from)
            scores = following
        path = [max(scores, key=lambda state: (scores[state], -state))]
        for came_from in reversed(steps):
            path.append(came_from[path[-1]])
        return path[::-1]

    def _step(self, scores, observed):
        """For the states of a character that can follow: their scores, and the best state before each, from the
        ``scores`` of the previous character's states."""
        candidates = {}
        for state in sorted(scores):
            candidates.setdefault(self._after[state], []).append((scores[state], state, self._transitions[state]))
        following, came_from = {}, {}
        for state, emitted in observed:
            best, choice = _LEAST, None
            for score, before, transitions in candidates.get(self._before[state], ()):
                # added in jieba's order: another order would round differently
                score = score + transitions[state] + emitted
                if score > best:
                    best, choice = score, before
            if choice is not None:
                following[state], came_from[state] = best, choice
        return following, came_from

    def _observed(self, char):
        """(state, log probability of the character in it) for its states, or for all if jieba does not know it."""
        return self._of_known(char) if char in self._states_of else self._emitted(char, self._states)

    def _emitted(self, char, states):
        return [(self._number[state], self._emissions[state].get(char, UNSEEN)) for state in states]
