"""Folders of exported models: their files, and the engines that run them. ONNX needs no paddle."""
