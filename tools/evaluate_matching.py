"""Score a trained model on labeled data: paddle-rope evaluate matching."""

from bootstrap import door

main = door(__name__, "evaluate", "matching")
