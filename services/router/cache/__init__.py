"""Stored answers: exact and semantic cache, single flight, the sessions' escalation memory."""
