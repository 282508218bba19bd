"""The verbs of the command ``paddle-rope``."""
