"""Train a classifier of documents: paddle-rope train classification."""

from bootstrap import door

main = door(__name__, "train", "classification")
