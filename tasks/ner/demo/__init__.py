"""The generator of the embedded demo corpus."""
