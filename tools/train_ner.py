"""Train a NER model: paddle-rope train --recipe ner."""

from bootstrap import door

main = door(__name__, "train", "--recipe", "ner")
