"""Trained models made ready for use elsewhere."""
