"""What runs after a reply: which runs are planned, how many, and what is kept of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.vocabulary import Level, Reason, Target
from services.router.aside.compare import compare
from services.router.aside.probes import ProbeTimes
from services.router.aside.queue import AsideQueue
from services.router.aside.results import LateResults
from services.router.policy.after_reply import Late, Shadow
from services.router.policy.aside import late_plan, probe_targets, shadow_plan
from services.router.policy.decide import decide
from services.router.policy.facts import MODELS, CloudFacts, EdgeFacts, Facts, Screening
from services.router.policy.plan import Plan
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2
from tests.unit.router.builders import SHIPPED, make_facts

OPEN = SHIPPED.model_copy(update={"shadow": Shadow(share=0.5), "late": Late(enabled=True)})


def planned(facts: Facts) -> Plan:
    return decide(facts, SHIPPED, 0.0)


@pytest.mark.parametrize(
    ("served", "other"),
    [
        (Target.EDGE, [Target.CLOUD_LARGE]),
        (Target.CLOUD_LARGE, [Target.EDGE]),
        (Target.CLOUD_SMALL, [Target.EDGE]),
    ],
)
def test_the_other_side_is_run(served: Target, other: list[Target]) -> None:
    facts = make_facts()
    plan = shadow_plan(facts, OPEN, planned(facts), served, drawn=0.1)
    assert plan is not None
    assert [attempt.target for attempt in plan.attempts] == other


def test_only_the_drawn_share_is_compared() -> None:
    facts = make_facts()
    assert shadow_plan(facts, OPEN, planned(facts), Target.EDGE, drawn=0.5) is None
    assert shadow_plan(facts, SHIPPED, planned(facts), Target.EDGE, drawn=0.0) is None
    grey = replace(planned(facts), shadow=Target.EDGE)
    assert shadow_plan(facts, SHIPPED, grey, Target.CLOUD_LARGE, drawn=0.9) is not None


@given(
    st.sampled_from(sorted(Target)),
    st.sampled_from(sorted(Level)),
    st.sets(st.sampled_from(sorted(MODELS)), min_size=1),
    st.booleans(),
)
def test_a_private_request_never_leaves_aside_either(
    served: Target, level: Level, permitted: set[Target], failed: bool
) -> None:
    facts = make_facts(
        screening=Screening(() if failed else ("EMAIL",), failed=failed),
        pin_pii=True,
        permitted=frozenset(permitted),
    )
    plan = planned(make_facts())
    assert shadow_plan(facts, OPEN, plan, served, drawn=0.0) is None
    assert late_plan(facts, OPEN, plan, level) is None
    kept = replace(facts, screening=Screening(), keep_on_edge=True)
    assert shadow_plan(kept, OPEN, plan, served, drawn=0.0) is None
    assert late_plan(kept, OPEN, plan, level) is None


@given(st.sets(st.sampled_from(sorted(MODELS)), min_size=1), st.sampled_from(sorted(Target)))
def test_nothing_is_asked_aside_that_is_not_permitted(
    permitted: set[Target], served: Target
) -> None:
    facts = make_facts(permitted=frozenset(permitted))
    plan = planned(make_facts())
    for made in (
        shadow_plan(facts, OPEN, plan, served, drawn=0.0),
        late_plan(facts, OPEN, plan, Level.L4),
    ):
        assert made is None or {one.target for one in made.attempts} <= permitted


def test_only_a_last_resort_gets_a_late_answer() -> None:
    facts = make_facts()
    made = late_plan(facts, OPEN, planned(facts), Level.L4)
    assert made is not None
    assert [one.target for one in made.attempts] == [Target.CLOUD_SMALL, Target.CLOUD_LARGE]
    assert made.reason is Reason.DEFAULT
    assert late_plan(facts, OPEN, planned(facts), Level.L3) is None
    assert late_plan(facts, SHIPPED, planned(facts), Level.L4) is None


async def test_what_is_too_much_is_dropped_and_what_breaks_is_survived() -> None:
    queue, done, gate = AsideQueue(at_once=1, waiting=2), list[int](), asyncio.Event()

    def work(number: int) -> object:
        async def run() -> None:
            await gate.wait()
            done.append(number)
            if number == 0:
                raise RuntimeError("broken")

        return run

    queue.start()
    assert queue.offer(work(0))  # type: ignore[arg-type]
    await asyncio.sleep(0.01)
    taken = [queue.offer(work(number)) for number in (1, 2, 3)]  # type: ignore[arg-type]
    assert taken == [True, True, False]
    gate.set()
    await asyncio.sleep(0.01)
    assert done == [0, 1, 2]
    await queue.stop()


def test_a_result_is_its_tenants_and_grows_old() -> None:
    now = [0.0]
    results = LateResults(lambda: now[0], most=2)
    answer = router_pb2.RouteResponse(text="Late.")
    results.expect("a", "1", 10.0)
    assert results.get("a", "1").state == router_pb2.RESULT_STATE_PENDING
    results.ready("a", "1", 10.0, answer)
    assert results.get("a", "1").response.text == "Late."
    assert results.get("b", "1").state == router_pb2.RESULT_STATE_NONE
    now[0] = 10.0
    assert results.get("a", "1").state == router_pb2.RESULT_STATE_NONE
    for number in range(3):
        results.expect("a", str(number), 10.0)
    assert results.get("a", "0").state == router_pb2.RESULT_STATE_NONE
    assert results.get("a", "2").state == router_pb2.RESULT_STATE_PENDING


@pytest.mark.parametrize(
    ("form", "one", "other", "by", "agreement"),
    [
        ("labels", "yes", " Yes", "label", 1.0),
        ("labels", "yes", "no", "label", 0.0),
        ("schema", '{"a": 1, "b": 2}', '{"a": 1, "b": 3}', "schema_field", 0.5),
        ("schema", '{"a": null}', "{}", "schema_field", 0.0),
        ("schema", "no JSON", "{}", "schema_field", 0.0),
        ("", "It is Tokyo.", "it is tokyo", "words", 1.0),
    ],
)
def test_answers_are_compared_by_their_form(
    form: str, one: str, other: str, by: str, agreement: float
) -> None:
    output = chat_pb2.OutputContract()
    if form == "labels":
        output.labels.values.extend(["yes", "no"])
    elif form == "schema":
        output.json_schema = "{}"
    found = compare(router_pb2.RouteRequest(output=output), one, other)
    assert (found.by, found.agreement) == (by, agreement)


SLOW_CLOUD = {
    Target.CLOUD_SMALL: CloudFacts(eta_ms=9_000.0),
    Target.CLOUD_LARGE: CloudFacts(eta_ms=2_500.0),
}
SLOW_EDGE = EdgeFacts(up=True, context_tokens=8_192, ttft_ms=9_000.0, tpot_ms=10.0)


def probed(
    facts: Facts, served: Target = Target.CLOUD_LARGE, granted_ms: float = 8_000.0
) -> set[Target]:
    return set(probe_targets(facts, SHIPPED, planned(facts), served, granted_ms))


def test_a_target_left_for_its_slowness_is_probed() -> None:
    assert probed(make_facts()) == set()
    assert probed(make_facts(cloud=SLOW_CLOUD)) == {Target.CLOUD_SMALL}
    assert probed(make_facts(edge=SLOW_EDGE)) == {Target.EDGE}
    assert probed(make_facts(cloud=SLOW_CLOUD), served=Target.CLOUD_SMALL) == set()
    down = replace(SLOW_EDGE, up=False)
    assert probed(make_facts(edge=down)) == set()


def test_a_short_budget_makes_nothing_slow() -> None:
    assert probed(make_facts(), granted_ms=100.0) == set()


def test_no_probe_for_private_requests_for_what_is_not_permitted_or_where_switched_off() -> None:
    slow = make_facts(cloud=SLOW_CLOUD)
    assert probed(replace(slow, screening=Screening(("EMAIL",)))) == set()
    assert probed(replace(slow, keep_on_edge=True)) == set()
    assert probed(replace(slow, permitted=frozenset({Target.EDGE, Target.CLOUD_LARGE}))) == set()
    never = SHIPPED.latency.model_copy(update={"probe_every_s": 0.0})
    quiet = SHIPPED.model_copy(update={"latency": never})
    assert probe_targets(slow, quiet, planned(slow), Target.EDGE, 8_000.0) == ()


def test_probes_are_a_trickle() -> None:
    times = ProbeTimes()
    due = [times.due(Target.EDGE, 20.0, now) for now in (0.0, 19.9, 20.0, 25.0)]
    assert due == [True, False, True, False]
    assert times.due(Target.CLOUD_SMALL, 20.0, 25.0)
