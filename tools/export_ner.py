"""Export a NER model for deployment: paddle-rope export."""

from bootstrap import main_of

main = main_of(__name__, "export")
