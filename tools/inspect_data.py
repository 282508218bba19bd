"""Look at labeled NER data: paddle-rope inspect."""

from bootstrap import door

main = door(__name__, "inspect")
