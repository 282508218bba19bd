"""Checkpoints of Hugging Face, PaddleNLP and TensorFlow are read; Hugging Face's are also written."""
