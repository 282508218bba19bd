"""Prediction of entities in texts with one or more trained models, and output of predictions as data or as a page."""
