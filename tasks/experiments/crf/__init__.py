"""A conditional random field with the word features of the NER recipe, as a baseline."""
