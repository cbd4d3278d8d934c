"""The pure parts under a virtual clock, `make simulate`: a million requests, every invariant."""
