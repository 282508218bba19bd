"""Words of a prefix dictionary in a text."""


def with_prefixes(counts):
    """``counts``, a dict from strings to numbers above 0, with 0 for the prefixes that are not in it themselves."""
    prefixes = {word[:end]: 0 for word in counts for end in range(1, len(word))}
    return {**prefixes, **counts}


def find_words(text, counts, shortest=1):
    """All places of a text where a word stands, ordered by start and end.

    From each character the text is followed as long as it is a prefix of a word, so that the work is at most the length
    of the text times that of the longest word.

    Args:
        text: string.
        counts: as from :func:`with_prefixes`.
        shortest: length of the shortest words that are looked for.

    Returns:
        List of (start, end).
    """
    found = []
    for start in range(len(text)):
        end = start + 1
        count = counts.get(text[start])
        while count is not None:
            if count and end - start >= shortest:
                found.append((start, end))
            if end == len(text):
                break
            end += 1
            count = counts.get(text[start:end])
    return found


def is_storable(string):
    """Whether UTF-8 can hold the string: a lone surrogate cannot be written to a file."""
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
