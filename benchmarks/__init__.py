"""Measurements: timing lives here and not in tests."""
