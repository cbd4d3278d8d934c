"""Runs a plan: attempts, the release of text, and the last resort."""
