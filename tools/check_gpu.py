"""Check this library on a GPU: paddle-rope benchmark device."""

from bootstrap import door

main = door(__name__, "benchmark", "device")
