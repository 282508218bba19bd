"""Time and memory: of layers, of models against length, of an exported model."""
