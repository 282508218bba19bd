"""Train a model of text matching: paddle-rope train matching."""

from bootstrap import door

main = door(__name__, "train", "matching")
