"""Trained models made ready for use: thresholds and temperatures tuned."""
