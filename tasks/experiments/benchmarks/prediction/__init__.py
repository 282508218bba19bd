"""Engines that predict entities with one model: how fast each is, and whether it finds the same."""
