"""The folder of a run, its lock, its data and its epochs."""
