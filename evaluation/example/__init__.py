"""The worked example: intents, from baseline over thresholds to the report."""
