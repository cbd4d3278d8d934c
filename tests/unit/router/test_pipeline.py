"""The spine leaves exactly one record, and says how the request ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from services.common.errors import QueueFull
from services.router.ask import Ask
from services.router.config import LoadSettings
from services.router.execute.executor import Errand
from services.router.execute.trail import Trail
from services.router.pipeline import Pipeline
from services.router.policy_store import VersionedPolicy
from services.router.state.load import Load
from services.router.state.spend import Spend
from tests.fakes.targets import CollectingSink
from tests.unit.router.builders import SHIPPED, make_facts
from tests.unit.router.test_executor import make_ask

POLICY = VersionedPolicy(SHIPPED, "v")


@dataclass
class Ending:
    """An executor that waits for ever, or raises."""

    error: Exception | None = None

    async def run(self, errand: Errand) -> Any:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(60)


@dataclass
class Records:
    """A recorder that keeps how requests ended."""

    ended: list[str] = field(default_factory=list)

    def record(self, ask: Ask, trail: Trail, policy_version: str, now: float) -> None:
        self.ended.append(trail.ended)


class Facts:
    """A gatherer of fixed facts."""

    def __init__(self) -> None:
        self.load = Load(LoadSettings(), lambda: 0.0)
        self.spend = Spend(lambda: 0.0)

    def facts(self, *_: object) -> Any:
        return make_facts()


class Nothing:
    """A detector that finds nothing."""

    def find(self, text: str) -> tuple[()]:
        return ()


def spine(ending: Ending, now: list[float]) -> tuple[Pipeline, Records]:
    records = Records()
    pipeline = Pipeline(
        detector=Nothing(),
        gatherer=cast("Any", Facts()),
        executor=cast("Any", ending),
        recorder=cast("Any", records),
        clock=lambda: now[0],
    )
    return pipeline, records


@pytest.mark.parametrize(("late_s", "ended"), [(-1.0, "CANCELLED"), (1.0, "DEADLINE")])
async def test_a_deadline_is_told_apart_from_a_caller_that_left(late_s: float, ended: str) -> None:
    ask = make_ask()
    now = [ask.budget.received_at]
    pipeline, records = spine(Ending(), now)
    task = asyncio.create_task(pipeline.answer(ask, POLICY, CollectingSink()))
    await asyncio.sleep(0)
    now[0] = ask.budget.expires_at + late_s
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert records.ended == [ended]


@pytest.mark.parametrize(
    ("error", "ended"), [(QueueFull("full"), "QUEUE_FULL"), (RuntimeError("x"), "ERROR")]
)
async def test_errors_leave_one_record_too(error: Exception, ended: str) -> None:
    ask = make_ask()
    pipeline, records = spine(Ending(error), [ask.budget.received_at])
    with pytest.raises(type(error)):
        await pipeline.answer(ask, POLICY, CollectingSink())
    assert records.ended == [ended]
