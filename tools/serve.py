"""Serve models over HTTP: paddle-rope serve."""

from bootstrap import door

main = door(__name__, "serve")
