"""Find entities in texts: paddle-rope predict ner."""

from bootstrap import door

main = door(__name__, "predict", "ner")
