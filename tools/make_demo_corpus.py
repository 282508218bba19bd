"""Write the demo corpus for NER: paddle-rope demo ner."""

from bootstrap import door

main = door(__name__, "demo", "ner")
