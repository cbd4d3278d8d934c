"""Offline evaluation: reads data and records, changes nothing."""
