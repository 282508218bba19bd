"""Texts with their entities as a page for a browser."""

LANGUAGES = ("en", "zh")  # that words.yaml has
