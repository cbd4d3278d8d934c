"""The model kit: turns published GGUF weights into the ONNX model the worker serves."""
