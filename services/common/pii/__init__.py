"""Finds personal data and secrets in text."""
