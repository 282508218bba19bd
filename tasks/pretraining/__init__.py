"""Masked-language-model pretraining of RoFormer on plain text, in stages of different lengths."""
