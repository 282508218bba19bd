"""Folders of exported models: what is in them, and the engines that compute them. Without paddle for ONNX."""
