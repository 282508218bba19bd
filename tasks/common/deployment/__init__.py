"""Export: from the folders of trained models to one for use."""
