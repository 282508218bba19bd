"""A character language model, and grids of small ones that compare ways to know a position."""
