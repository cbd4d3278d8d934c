"""Sentence vectors: the multilingual embedder on ONNX Runtime."""
