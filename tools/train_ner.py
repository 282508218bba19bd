"""Train a NER model: paddle-rope train ner."""

from bootstrap import door

main = door(__name__, "train", "ner")
