"""Checkpoints: reads those of Hugging Face, PaddleNLP and TensorFlow, writes Hugging Face's."""
