"""The life of a run: its folder, seed and lock, going on after an interruption, its epochs."""
