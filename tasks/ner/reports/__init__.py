"""What training, evaluation and inspection show: tables, kinds of errors, VisualDL."""
