"""Many training runs at one call, as a plan says; benchmarks; what only one experiment has."""
