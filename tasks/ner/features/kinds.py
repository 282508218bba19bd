"""Names of the kinds of features."""

# Kinds that give a token values of a vocabulary, and how many of them.
COLUMNS = {
    "segmentation": 1,  # place in the word of jieba's segmentation, and its part of speech
    "bigrams": 2,  # the token's first character with the one before it, its last with the one behind it
    "words": 3,  # the segmentation's word, the longest dictionary word that begins here, that ends here
}
# Kinds that give a token 0/1 flags: "dictionary", the words of jieba's dictionary that the token is part of;
# "gazetteer", the entities of the training data that it would be part of.
FEATURE_KINDS = (*COLUMNS, "dictionary", "gazetteer")
UNKNOWN = 1  # number of a value that the vocabulary lacks; 0 says that there is none
JIEBA_KINDS = ("segmentation", "words", "dictionary")


def check_kinds(kinds):
    """The kinds in the order of ``FEATURE_KINDS``, each once; raises ValueError if one is unknown."""
    unknown = [kind for kind in kinds if kind not in FEATURE_KINDS]
    if unknown:
        raise ValueError(f"features must be some of {', '.join(FEATURE_KINDS)}, got {unknown[0]!r}")
    return tuple(kind for kind in FEATURE_KINDS if kind in kinds)


def check_sizes(sizes):
    """Raise ValueError unless ``sizes`` are those of features, at least of one kind."""
    try:
        tables, flags = sizes["tables"], sizes["flags"]
        fits = set(tables) <= set(COLUMNS) and all(type(n) is int for n in (*tables.values(), flags))
        fits = fits and all(rows >= 2 for rows in tables.values()) and flags >= 0 and (tables or flags)
    except (KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise ValueError(f'features must be {{"tables": {{kind: rows}}, "flags": number}}, got {sizes!r}')
