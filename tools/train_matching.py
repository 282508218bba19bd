"""Train a model of text matching: paddle-rope train --recipe matching."""

from bootstrap import main_of

main = main_of(__name__, "train", "--recipe", "matching")
