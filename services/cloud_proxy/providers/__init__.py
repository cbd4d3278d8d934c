"""Clients of large-model providers."""
