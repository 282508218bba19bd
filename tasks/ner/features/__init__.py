"""Word features of each token, from dictionaries, the segmentation and the training data."""

from paddle_rope.tasks.ner.features.token_features import COLUMNS, FEATURE_KINDS, FIRST_VALUE, UNKNOWN, TokenFeatures
from paddle_rope.tasks.ner.features.word_features import FILE_NAME, WordFeatures

__all__ = ["COLUMNS", "FEATURE_KINDS", "FILE_NAME", "FIRST_VALUE", "UNKNOWN", "TokenFeatures", "WordFeatures"]
