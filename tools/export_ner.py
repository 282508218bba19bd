"""Export a NER model for deployment: paddle-rope export."""

from bootstrap import door

main = door(__name__, "export")
