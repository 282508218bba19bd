"""Checkpoints: those of Hugging Face, PaddleNLP and TensorFlow as ours, ours as Hugging Face's."""
