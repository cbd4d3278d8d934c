"""Our detector of personal data beside Presidio and argus-redact."""
