"""Texts with their entities as a page for a browser."""
