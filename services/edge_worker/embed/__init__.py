"""Vectors of texts: USE multilingual v3 on ONNX Runtime."""
