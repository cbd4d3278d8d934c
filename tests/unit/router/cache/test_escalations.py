"""A repeat or doubt of an escalated question gets its answer, in its session and nowhere else."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from services.common.vocabulary import FallbackType, Level, Reason, Target
from services.router.ask import Ask
from services.router.cache.desk import Look
from services.router.cache.escalations import is_doubt
from services.router.cache.key import key_of
from services.router.policy.facts import Screening
from tests.unit.router.cache.test_desk import GOOD, POLICY, Rig, rig
from tests.unit.router.test_executor import make_ask

ESCALATED = replace(
    GOOD, level=Level.L2, target=Target.CLOUD_SMALL, fallback_type=FallbackType.QUALITY
)


def turn(session: str, *texts: str, tenant: str = "t", plan: str = "gold") -> Ask:
    """A conversation by turns, the user's first and last; slots make it the session's own."""
    ask = make_ask()
    ask.request.ClearField("messages")
    for number, text in enumerate(texts):
        ask.request.messages.add(role=2 if number % 2 else 1, content=text)
    ask.request.slots["plan"] = plan
    return replace(ask, session_id=session, tenant=ask.tenant.model_copy(update={"name": tenant}))


async def look(made: Rig, ask: Ask) -> Look:
    key = key_of(ask, Screening(), POLICY)
    assert key is not None
    found = await made.desk.look(ask, key, 50)
    made.desk.done(ask, found, None)
    return found


async def escalate(made: Rig, ask: Ask) -> None:
    key = key_of(ask, Screening(), POLICY)
    assert key is not None
    made.desk.done(ask, await made.desk.look(ask, key, 50), ESCALATED)
    await asyncio.sleep(0.02)


ASKED = "how do I reset my password"


@pytest.mark.parametrize("last", ["真的吗？", "Are you sure?", "really", "你确定吗"])
async def test_a_doubt_gets_the_answer_that_was_doubted(last: str) -> None:
    made = rig()
    await escalate(made, turn("s", ASKED))
    found = await look(made, turn("s", ASKED, "An answer.", last))
    assert found.hit is not None
    assert found.hit[1] is Reason.ESCALATION_MEMORY
    assert found.hit[0].text == "An answer."


async def test_a_near_repeat_gets_the_answer() -> None:
    made = rig()
    await escalate(made, turn("s", ASKED))
    found = await look(made, turn("s", ASKED, "An answer.", "How do I reset my passwords?"))
    assert found.hit is not None
    assert found.hit[1] is Reason.ESCALATION_MEMORY


@pytest.mark.parametrize(
    "other",
    [
        turn("s2", ASKED, "An answer.", "Are you sure?"),
        turn("s", ASKED, "An answer.", "Are you sure?", tenant="u"),
        turn("s", ASKED, "An answer.", "Are you sure?", plan="silver"),
        turn("s", ASKED, "Another answer.", "Are you sure?"),
        turn("s", ASKED, "An answer.", "Are you sure about the second point?"),
        turn("s", ASKED, "An answer.", "how do I not reset my password"),
    ],
    ids=["session", "tenant", "slots", "answer", "question", "negated"],
)
async def test_nothing_else_does(other: Ask) -> None:
    made = rig()
    await escalate(made, turn("s", ASKED))
    found = await look(made, other)
    assert found.hit is None


async def test_words_that_lean_on_other_turns_are_another_question() -> None:
    made = rig()
    await escalate(made, turn("s", "Is it odd?", "Yes.", "and the next one"))
    same = turn("s", "Is it odd?", "Yes.", "and the next one", "An answer.", "And the next one?")
    other = turn("s", "Is it even?", "Yes.", "and the next one")
    assert (await look(made, same)).hit is not None
    assert (await look(made, other)).hit is None


async def test_it_is_forgotten_after_its_time_and_over_its_number() -> None:
    made = rig()
    await escalate(made, turn("s", ASKED))
    for number in range(8):
        await escalate(made, turn("s", "another question " + "x" * 30 * number, plan="gold"))
    assert (
        await look(made, turn("s", ASKED, "An answer.", "how do I reset my passwords"))
    ).hit is None
    await escalate(made, turn("s", ASKED))
    made.now[0] += 1_000
    assert (await look(made, turn("s", ASKED, "An answer.", "Are you sure?"))).hit is None


@pytest.mark.parametrize("text", ["sure", "are we sure that it ships on Monday?", "确定订单", ""])
def test_other_words_are_no_doubt(text: str) -> None:
    assert is_doubt(text) is (text == "sure")
