"""Labeled data: reading, splits, inspection, download of public sets."""
