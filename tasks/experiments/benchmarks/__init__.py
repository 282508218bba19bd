"""Benchmarks of layers, of models against the length of texts, and of exported models."""
