"""Maps scores to the share of such answers that are right, and says how far to trust it."""
