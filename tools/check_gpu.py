"""Check this library on a GPU: paddle-rope benchmark device."""

from bootstrap import main_of

main = main_of(__name__, "benchmark", "device")
