"""Download a public NER data set: paddle-rope download."""

from bootstrap import door

main = door(__name__, "download")
