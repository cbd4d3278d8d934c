"""The budget: every malformed value of section 3, and the arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.deadline import MAX_METADATA_MS, Budget, BudgetLimits, parse_budget
from services.common.errors import DeadlineExceeded, InvalidField

LIMITS = BudgetLimits(default_ms=8_000, max_ms=120_000)


def parse(*pairs: tuple[str, str | bytes], native_s: float | None = None) -> Budget:
    return parse_budget(pairs, native_remaining_s=native_s, limits=LIMITS, now=100.0)


def test_absent_takes_the_default() -> None:
    assert parse().remaining_ms(100.0) == pytest.approx(8_000)


def test_both_names_are_read() -> None:
    budget = parse(("x-deadline-ms", "1000"), ("x-elapsed-ms", "200"))
    assert budget.remaining_ms(100.0) == pytest.approx(800)


def test_the_native_deadline_is_the_lower_bound() -> None:
    assert parse(("deadline_ms", "1000"), native_s=0.3).remaining_ms(100.0) == pytest.approx(300)
    assert parse(("deadline_ms", "300"), native_s=1.0).remaining_ms(100.0) == pytest.approx(300)


def test_more_than_the_maximum_is_clamped() -> None:
    assert parse(("deadline_ms", "999999")).remaining_ms(100.0) == pytest.approx(120_000)


BAD = ["0", "-1", "+5", "1.5", "", " 5", "5 ", "1e3", "abc", "٣", "1_000", str(2**31), "9" * 30]


@pytest.mark.parametrize("value", BAD)
def test_malformed_deadlines_name_the_field(value: str) -> None:
    with pytest.raises(InvalidField) as caught:
        parse(("deadline_ms", value))
    assert caught.value.field == "deadline_ms"
    assert str(MAX_METADATA_MS) in caught.value.rule


@pytest.mark.parametrize("value", [bad for bad in BAD if bad != "0"])
def test_malformed_elapsed_names_the_field(value: str) -> None:
    with pytest.raises(InvalidField) as caught:
        parse(("deadline_ms", "1000"), ("elapsed_ms", value))
    assert caught.value.field == "elapsed_ms"


@pytest.mark.parametrize("second", ["deadline_ms", "x-deadline-ms"])
def test_a_duplicate_is_refused(second: str) -> None:
    with pytest.raises(InvalidField, match="once"):
        parse(("deadline_ms", "1000"), (second, "1000"))


def test_elapsed_needs_a_deadline() -> None:
    with pytest.raises(InvalidField) as caught:
        parse(("elapsed_ms", "5"))
    assert caught.value.field == "elapsed_ms"


@pytest.mark.parametrize("elapsed", ["1000", "1001"])
def test_a_used_up_budget_is_too_late(elapsed: str) -> None:
    with pytest.raises(DeadlineExceeded):
        parse(("deadline_ms", "1000"), ("elapsed_ms", elapsed))


@given(
    deadline=st.integers(1, MAX_METADATA_MS),
    elapsed=st.integers(0, MAX_METADATA_MS),
    spent_s=st.floats(0, 200),
    cap_ms=st.floats(0, 200_000),
)
def test_a_child_never_gets_more_than_remains(
    deadline: int, elapsed: int, spent_s: float, cap_ms: float
) -> None:
    try:
        budget = parse(("deadline_ms", str(deadline)), ("elapsed_ms", str(elapsed)))
    except DeadlineExceeded:
        return
    now = 100.0 + spent_s
    child = dict(budget.child_metadata(now, cap_ms))
    passed_on = int(child["deadline_ms"]) - int(child["elapsed_ms"])
    assert passed_on >= 1
    # One millisecond at least is sent, and rounding may add one.
    assert passed_on <= max(1, min(cap_ms, budget.remaining_ms(now) + 1))
    assert int(child["elapsed_ms"]) >= elapsed


def test_a_rest_too_small_for_the_clock_is_none() -> None:
    with pytest.raises(DeadlineExceeded):
        parse_budget((), native_remaining_s=1e-20, limits=BudgetLimits(), now=5.0)
