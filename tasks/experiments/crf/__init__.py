"""A conditional random field with the word features of the NER recipe, to compare with."""
