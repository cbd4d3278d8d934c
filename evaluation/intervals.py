"""Intervals of shares."""

from __future__ import annotations

import math

_Z95 = 1.959963984540054


def wilson(hits: int, total: int, z: float = _Z95) -> tuple[float, float] | None:
    """Wilson's score interval (Wilson 1927) of `hits` in `total`; None without any."""
    if total == 0:
        return None
    share, square = hits / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = (
        z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    )
    return max(0.0, middle - half), min(1.0, middle + half)
