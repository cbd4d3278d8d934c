"""The guarded way out: screens what leaves, calls providers, retries, counts the cost."""
