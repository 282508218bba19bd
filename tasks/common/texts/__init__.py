"""Reading text: files, records, documents, streams."""
