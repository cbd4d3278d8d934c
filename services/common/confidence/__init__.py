"""How sure an answer is: signals, scorers, calibrators and bands. Pure."""
