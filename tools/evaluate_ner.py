"""Score a trained model on labeled data: paddle-rope evaluate."""

from bootstrap import main_of

main = main_of(__name__, "evaluate")
