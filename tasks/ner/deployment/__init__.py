"""Trained models made ready for use: thresholds tuned, exported as a graph."""
