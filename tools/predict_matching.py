"""Score pairs or triples of texts: paddle-rope predict matching."""

from bootstrap import door

main = door(__name__, "predict", "matching")
