"""Train a classifier of documents: paddle-rope train --recipe classification."""

from bootstrap import main_of

main = main_of(__name__, "train", "--recipe", "classification")
