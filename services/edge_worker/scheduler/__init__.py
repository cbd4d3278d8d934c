"""Decides what the engine runs next: pure, with the clock passed in.

`Scheduler` is the only mutable thing; the engine guards it with one lock.
"""
