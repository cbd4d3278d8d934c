"""Recorded traffic through another policy, without calling a model."""
