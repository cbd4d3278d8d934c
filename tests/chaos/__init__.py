"""The fault matrix, `make chaos`: `__main__` runs it, `cells` says what it holds."""
