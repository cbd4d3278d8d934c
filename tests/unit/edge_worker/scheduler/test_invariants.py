"""Whatever comes, in whatever order: no sequence lost, no bound exceeded, nobody starved."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.unit.edge_worker.scheduler.machine import EngineModel

TestInvariants = EngineModel.TestCase
TestInvariants.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
