"""Limits of callers: where usage is kept, and the guard around a call."""
