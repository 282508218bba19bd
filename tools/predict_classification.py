"""Find the class of texts: paddle-rope predict classification."""

from bootstrap import door

main = door(__name__, "predict", "classification")
