"""The stand-in upstream: the edge model at full precision behind an OpenAI-compatible face.

It stands where a real provider would, so that the whole system can run and be
tested without one, and it says so wherever it answers.
"""
