"""Train a NER model: paddle-rope train --recipe ner."""

from bootstrap import main_of

main = main_of(__name__, "train", "--recipe", "ner")
