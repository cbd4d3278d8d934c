"""The ledger: one row per request and the verdicts on it, written off the request's way."""
