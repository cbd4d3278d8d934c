"""Limits of the router's own: calls of a tenant, shed channels, and money that runs out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import RateLimited
from services.common.vocabulary import Reason, Target
from services.router.config import LoadSettings
from services.router.policy.decide import decide
from services.router.policy.facts import MODELS
from services.router.state.load import Load
from services.router.state.spend import Spend
from services.router.tenants import Tenant
from tests.unit.router.builders import SHIPPED, make_facts

HARD = {"computes_amounts": True}


def load(now: list[float], **settings: object) -> Load:
    return Load(LoadSettings.model_validate(settings), lambda: now[0])


def test_a_tenant_has_so_many_calls_at_once() -> None:
    tenant, here = Tenant(name="t", max_concurrent_calls=1), load([0.0])
    with here.counted(tenant):
        with pytest.raises(RateLimited) as refused, here.counted(tenant):
            pass
        assert refused.value.retry_after_ms
        with here.counted(Tenant(name="other", max_concurrent_calls=1)):
            pass
    with here.counted(tenant):
        pass


def test_calls_a_second_come_back_with_time() -> None:
    now = [0.0]
    tenant, here = Tenant(name="t", max_calls_per_s=2.0), load(now)

    def taken() -> int:
        count = 0
        for _ in range(5):
            try:
                with here.counted(tenant):
                    count += 1
            except RateLimited as refused:
                assert 0 < (refused.retry_after_ms or 0) <= 501
        return count

    assert taken() == 2
    now[0] = 0.5
    assert taken() == 1


def test_only_low_priority_channels_are_shed_and_only_under_load() -> None:
    here = load([0.0], shed_from=1, low_priority_channels=["batch"])
    tenant = Tenant(name="t")
    with here.counted(tenant):
        assert not here.sheds("batch")
        with here.counted(tenant):
            assert here.sheds("batch")
            assert not here.sheds("api")


def test_a_shed_call_has_no_attempt_and_says_why() -> None:
    plan = decide(make_facts(shed=True), SHIPPED, 0.0)
    assert (plan.attempts, plan.reason) == ((), Reason.LOAD_SHED)


@pytest.mark.parametrize(
    ("share", "target", "reason"),
    [
        (0.79, Target.CLOUD_LARGE, Reason.HARD_RULE),
        (0.80, Target.CLOUD_SMALL, Reason.COST_CEILING),
        (1.00, Target.EDGE, Reason.COST_CEILING),
    ],
)
def test_the_tier_is_lowered_before_it_is_refused(
    share: float, target: Target, reason: Reason
) -> None:
    facts = make_facts(cost_share=share)
    hard = make_facts(cost_share=share, tools=("one", "two"), task_type="multi_step_tools")
    plan = decide(hard, SHIPPED, 0.0)
    assert plan.first is not None
    assert plan.first.target is target
    if share >= 0.8:
        assert plan.reason is reason
    assert decide(facts, SHIPPED, 0.0).first is not None


def test_without_the_edge_a_spent_ceiling_leaves_the_last_resort() -> None:
    clouds = frozenset({Target.CLOUD_SMALL, Target.CLOUD_LARGE})
    plan = decide(make_facts(cost_share=1.0, permitted=clouds), SHIPPED, 0.0)
    assert plan.attempts == ()
    assert plan.reason is Reason.COST_CEILING


@given(st.floats(0, 3), st.booleans(), st.sets(st.sampled_from(sorted(MODELS)), min_size=1))
def test_no_plan_spends_beyond_the_ceiling(
    share: float, shed: bool, permitted: set[Target]
) -> None:
    facts = make_facts(cost_share=share, shed=shed, permitted=frozenset(permitted))
    targets = {attempt.target for attempt in decide(facts, SHIPPED, 0.0).attempts}
    assert targets <= permitted
    if share >= SHIPPED.lower_from_cost_share:
        assert Target.CLOUD_LARGE not in targets
    if share >= 1.0:
        assert targets <= {Target.EDGE}
    if shed:
        assert not targets


def test_spending_is_by_tenant_and_day() -> None:
    wall = [86_400.0 * 100]
    spend = Spend(lambda: wall[0])
    spend.note("a", 500_000)
    assert spend.share("a", 1.0) == 0.5
    assert spend.share("b", 1.0) == 0.0
    assert spend.share("a", None) == 0.0
    wall[0] += 86_400.0
    assert spend.share("a", 1.0) == 0.0
