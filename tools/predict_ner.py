"""Find entities in texts: paddle-rope predict."""

from bootstrap import door

main = door(__name__, "predict")
