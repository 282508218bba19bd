"""Find entities in texts: paddle-rope predict."""

from bootstrap import main_of

main = main_of(__name__, "predict")
