"""The annotation loop, simulated: labels of a public data set are uncovered for the texts that are selected."""
