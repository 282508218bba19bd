"""Series of training runs described by a plan; benchmarks; code for single experiments."""
