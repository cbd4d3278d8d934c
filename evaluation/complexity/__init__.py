"""Trains and measures complexity models."""
