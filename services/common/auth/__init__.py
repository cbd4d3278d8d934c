"""Callers from outside: API keys, tokens of identity providers, and what they may call."""
