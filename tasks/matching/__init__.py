"""Text matching: do two texts mean the same, and which of two texts is closer to a third.

Data flows one way: pairs or triples of texts -> sequences of tokens -> padded batches -> scores -> accuracy, F1 and
Spearman correlation.
"""
