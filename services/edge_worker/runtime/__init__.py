"""Runtimes that execute the edge model: the protocol and its implementations."""
