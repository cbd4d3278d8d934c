"""Sweeps thresholds over judged rows, and chooses one with a stated confidence."""
