"""What training, evaluation and inspection print; and the reliability of probabilities."""
