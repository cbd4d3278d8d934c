"""A portion of the simulation from one seed; a module of its own so that processes can share it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from services.router.policy_store import load_policy
from tests.simulation.edge import Broken, EdgeRun
from tests.simulation.router import RouterRun


def portion(task: tuple[str, int, int]) -> dict[str, Any]:
    """One part from one seed; what it counted, or how it broke."""
    part, seed, requests = task
    rng = random.Random(seed)
    try:
        if part == "edge":
            edge = EdgeRun(rng, requests).run()
            return {"ends": edge.ends, "steps": edge.steps, "gap_ms": edge.longest_gap_ms}
        loaded = load_policy(Path("config/policy.yaml"), Path("config/thresholds.yaml")).policy
        others = [
            loaded.model_copy(update={"on_large_timeout": each})
            for each in ("next_level", "edge_draft")
        ]
        router = RouterRun(rng, requests, (loaded, loaded, loaded, *others)).run()
        return {"ends": router.ends, "steps": router.steps, "missed": router.missed}
    except Exception as error:
        kind = "" if isinstance(error, Broken) else f"{type(error).__name__} "
        return {"broken": f"{part}, seed {seed}, {requests} requests: {kind}{error}"}
