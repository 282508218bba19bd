"""Words that the dictionary lacks, and their parts of speech: the hidden Markov model of jieba's tagger."""

import numpy as np

UNSEEN = -3.14e100  # logarithm of the probability of a character that a state never emits
MAX_REMEMBERED = 1 << 14  # strings whose words are kept for the next text


class UnknownWords:
    """Cuts strings of Chinese characters as ``jieba.posseg`` does, to the last tie. Threads may share it.

    Args:
        arrays: those of :func:`tasks.ner.features.jieba_files.read_jieba`.
    """

    def __init__(self, arrays):
        self._states = arrays["states"].tolist()
        self._start, self._transitions = arrays["start"], arrays["transitions"]
        self._emissions = _groups(arrays["emission_characters"])
        self._emission_states, self._emission_scores = arrays["emission_states"], arrays["emission_scores"]
        self._known = _groups(arrays["known_characters"])
        self._known_states = arrays["known_states"]
        self._of_character = {}  # of known characters that were seen
        self._remembered = {}

    def cut(self, string):
        """The words of a string.

        Returns:
            Tuple of (length, part of speech), which covers the string.
        """
        words = self._remembered.get(string)
        if words is None:
            words = self._words(string)
            if len(self._remembered) >= MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[string] = words
        return words

    def _words(self, string):
        words, start = [], 0
        path = self._path(string)
        for end, state in enumerate(path, 1):
            if state[0] in "ES":
                words.append((end - start, state[1:]))
                start = end
        if start < len(string):  # a word without an end
            words.append((len(string) - start, path[start][1:]))
        return tuple(words)

    def _path(self, string):
        """The most probable states of the characters (Viterbi)."""
        states, emitted = self._observed(string[0])
        scores = self._start[states] + emitted
        steps = []
        for char in string[1:]:
            current, emitted = self._observed(char)
            # the sums in jieba's order: another one would round otherwise
            sums = (scores[:, None] + self._transitions[states[:, None], current]) + emitted
            best = sums.max(axis=0)
            if best.min() == -np.inf:  # states that cannot follow
                reached = np.flatnonzero(best > -np.inf)
                if len(reached):
                    current, sums, best = current[reached], sums[:, reached], best[reached]
                else:
                    followed = self._transitions[states]
                    current = np.flatnonzero((followed > -np.inf).any(axis=0))
                    sums = (scores[:, None] + followed[:, current]) + self._emitted(char)[current]
                    best = sums.max(axis=0)
            steps.append((states, sums.argmax(axis=0)))  # of equal ones the first, which is the last by name
            states, scores = current, best
        place = int(scores.argmax())
        path = [self._states[states[place]]]
        for before, came_from in reversed(steps):
            place = came_from[place]
            path.append(self._states[before[place]])
        return path[::-1]

    def _observed(self, char):
        """(states that a character may have, ascending; float64 logarithms of its probability in each)."""
        observed = self._of_character.get(char)
        if observed is None:
            known = self._known.get(char)
            if known is None:
                return np.arange(len(self._states)), self._emitted(char)
            states = self._known_states[known].astype(np.int64)
            observed = self._of_character[char] = states, self._emitted(char)[states]
        return observed

    def _emitted(self, char):
        """float64 ``[states]``: logarithm of the probability of a character in each state."""
        emitted = np.full(len(self._states), UNSEEN)
        rows = self._emissions.get(char)
        if rows is not None:
            emitted[self._emission_states[rows]] = self._emission_scores[rows]
        return emitted


def _groups(characters):
    """dict from each character of an ordered array of code points to the slice of its rows."""
    starts = np.flatnonzero(np.diff(characters.astype(np.int64), prepend=-1))
    bounds = [*starts.tolist(), len(characters)]
    return {chr(code): slice(*pair) for code, pair in zip(characters[starts].tolist(), zip(bounds, bounds[1:]))}
