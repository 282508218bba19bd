"""F1 of NER models against the length of the text and the position in it."""
