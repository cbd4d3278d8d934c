"""Which policy answers which session."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from services.router.experiment import Policies, in_arm_b
from services.router.policy_store import PolicyStore

SHIPPED = Path("config/policy.yaml")


def store() -> PolicyStore:
    return PolicyStore(SHIPPED, 1_000, lambda well: None)


def test_without_a_candidate_there_is_no_arm() -> None:
    chosen = Policies(store()).choose("t", "s")
    assert (chosen.arm, chosen.candidate) == ("", None)


def test_a_dry_run_answers_by_the_policy_in_force() -> None:
    policies = Policies(store(), store())
    chosen = policies.choose("t", "s")
    assert policies.candidate is not None
    assert chosen.policy is policies.in_force.current
    assert chosen.candidate is policies.candidate.current
    assert chosen.arm == ""


def test_an_ab_test_serves_the_candidate_to_its_arm() -> None:
    policies = Policies(store(), store(), ab_share=0.3)
    assert policies.candidate is not None
    arms = [policies.choose("t", str(number)) for number in range(3_000)]
    served = {chosen.arm: chosen.policy for chosen in arms}
    assert served["A"] is policies.in_force.current
    assert served["B"] is policies.candidate.current
    share = sum(chosen.arm == "B" for chosen in arms) / len(arms)
    assert 0.27 < share < 0.33


@given(st.text(max_size=20), st.text(max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_a_session_stays_in_its_arm_as_the_share_grows(
    tenant: str, session: str, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert in_arm_b(tenant, session, high) or not in_arm_b(tenant, session, low)
    assert not in_arm_b(tenant, session, 0.0)
    assert in_arm_b(tenant, session, 1.0)
