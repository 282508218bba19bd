"""Texts with their entities as a page for a browser."""

LANGUAGES = ("en", "zh")  # the languages in words.yaml
