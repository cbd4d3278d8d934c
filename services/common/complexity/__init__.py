"""How hard a prompt is: features, and small models that run on numpy alone."""
