"""PaddleNLP's Trainer adapted for all recipes, the keys that recipes share, VisualDL."""
