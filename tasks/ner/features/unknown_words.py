"""Words that the dictionary lacks, and their parts of speech: the hidden Markov model of jieba's tagger."""

import numpy as np

UNSEEN = -3.14e100  # logarithm of the probability of a character that a state never emits
MAX_REMEMBERED = 1 << 14  # strings whose words are kept for the next text
_LEAST = float("-inf")


class UnknownWords:
    """Cuts strings of Chinese characters as ``jieba.posseg`` does, to the last tie. Threads may share it. The states of
    the ``arrays`` (:func:`tasks.ner.features.jieba_dictionary.read_jieba`) are ordered so that of equally probable ones
    the first is jieba's choice."""

    def __init__(self, arrays):
        self._states = arrays["states"].tolist()
        self._begins = [state[0] in "BS" for state in self._states]  # a word
        self._ends = [state[0] in "ES" for state in self._states]
        self._start, self._transitions = arrays["start"].tolist(), arrays["transitions"].tolist()
        # Within a word few states can follow another. For each state the (state, transition) that can be before it.
        before = [np.flatnonzero(row).tolist() for row in arrays["transitions"].T > _LEAST]
        self._before = [
            tuple((one, self._transitions[one][state]) for one in of_state) for state, of_state in enumerate(before)
        ]
        self._emissions = _groups(arrays["emission_characters"])
        self._emission_states, self._emission_scores = arrays["emission_states"], arrays["emission_scores"]
        self._known = _groups(arrays["known_characters"])
        self._known_states, self._known_scores = arrays["known_states"], arrays["known_scores"]
        self._of_character = {}  # of known characters that were seen
        self._remembered = {}

    def cut(self, string):
        """The words of a string: a tuple of (length, part of speech), which covers it."""
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
            if self._ends[state]:
                words.append((end - start, self._states[state][1:]))
                start = end
        if start < len(string):  # a word without an end
            words.append((len(string) - start, self._states[path[start]][1:]))
        return tuple(words)

    def _path(self, string):
        """The most probable states of the characters, their numbers (Viterbi)."""
        observed = self._observed(string[0])
        scores = {state: self._start[state] + emitted for of_kind in observed for state, emitted in of_kind}
        steps = []
        for char in string[1:]:
            following, came_from = self._step(scores, *self._observed(char))
            if not following:  # none of the states it may have can follow: any that can
                following, came_from = self._step(scores, *self._in_any_state(char))
            steps.append(came_from)
            scores = following
        path = [max(scores, key=lambda state: (scores[state], -state))]
        for came_from in reversed(steps):
            path.append(came_from[path[-1]])
        return path[::-1]

    def _step(self, scores, beginning, continuing):
        """For a character's states that can follow, from the scores of the states of the character before: their
        scores, and the best state before."""
        following, came_from = {}, {}
        ended = [(score, state, self._transitions[state]) for state, score in scores.items() if self._ends[state]]
        ended.sort(reverse=True)
        for state, emitted in beginning:
            best, choice = _LEAST, None
            for score, before, transitions in ended:
                if score + emitted < best:  # so are all that come now, and transitions add nothing to them
                    break
                # the sum in jieba's order: another one would round otherwise
                score = score + transitions[state] + emitted
                if score > best or (score == best and choice is not None and before < choice):
                    best, choice = score, before
            if choice is not None:
                following[state], came_from[state] = best, choice
        score_of = scores.get
        for state, emitted in continuing:
            best, choice = _LEAST, None
            for before, transition in self._before[state]:
                score = score_of(before)
                if score is not None:
                    score = score + transition + emitted
                    if score > best:
                        best, choice = score, before
            if choice is not None:
                following[state], came_from[state] = best, choice
        return following, came_from

    def _observed(self, char):
        """The states that a character may have: first the ones that begin a word, then the ones that continue one, as
        lists of (state, logarithm of the character's probability in it). Characters unknown to jieba may have any."""
        observed = self._of_character.get(char)
        if observed is None:
            rows = self._known.get(char)
            if rows is None:
                return self._in_any_state(char)
            pairs = zip(self._known_states[rows].tolist(), self._known_scores[rows].tolist())
            observed = self._of_character[char] = self._by_kind(pairs)
        return observed

    def _in_any_state(self, char):
        """All states, as in :meth:`_observed`."""
        rows = self._emissions.get(char, slice(0))
        emitted = dict(zip(self._emission_states[rows].tolist(), self._emission_scores[rows].tolist()))
        return self._by_kind((state, emitted.get(state, UNSEEN)) for state in range(len(self._states)))

    def _by_kind(self, pairs):
        kinds: tuple = ([], [])
        for pair in pairs:
            kinds[not self._begins[pair[0]]].append(pair)
        return kinds


def _groups(characters):
    """dict from each character of an ordered array of code points to the slice of its rows."""
    starts = np.flatnonzero(np.diff(characters.astype(np.int64), prepend=-1))
    bounds = [*starts.tolist(), len(characters)]
    return {chr(code): slice(*pair) for code, pair in zip(characters[starts].tolist(), zip(bounds, bounds[1:]))}
