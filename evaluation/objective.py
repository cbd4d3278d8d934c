"""What a threshold is chosen for. Apart from the sweep, so that a command can list it at once."""

from __future__ import annotations

from enum import StrEnum


class Objective(StrEnum):
    """What a threshold is chosen for."""

    ACCEPTED_ACCURACY = "accepted-accuracy"
    SYSTEM_ACCURACY = "system-accuracy"
    EXPECTED_COST = "expected-cost"
    KNEE = "knee"
