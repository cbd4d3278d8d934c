"""Tandem's three services and what they share."""
