"""Train a classifier of documents: paddle-rope train --recipe classification."""

from bootstrap import door

main = door(__name__, "train", "--recipe", "classification")
