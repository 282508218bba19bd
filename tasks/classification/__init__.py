"""Classification of documents: one label for each text."""
