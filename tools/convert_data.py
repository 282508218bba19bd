"""Convert labeled NER data: paddle-rope convert."""

from bootstrap import door

main = door(__name__, "convert")
