"""The life of a run: its folder, seed and lock, its epochs."""
