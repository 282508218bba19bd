"""Train a model of text matching: paddle-rope train --recipe matching."""

from bootstrap import door

main = door(__name__, "train", "--recipe", "matching")
