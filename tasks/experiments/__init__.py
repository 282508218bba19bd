"""Comparison of kinds of attention: one plan of training runs, and time and memory against length."""
