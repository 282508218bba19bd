"""A causal language model of characters."""
