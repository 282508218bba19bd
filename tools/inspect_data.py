"""Look at labelled NER data: paddle-rope inspect."""

from bootstrap import door

main = door(__name__, "inspect")
