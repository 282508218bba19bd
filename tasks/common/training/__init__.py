"""PaddleNLP's Trainer with what every recipe wants of it, the keys that recipes share, VisualDL."""
