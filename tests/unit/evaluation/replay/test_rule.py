"""The vectorized rule is the router's own: held equal to `decide()` and `judge()`."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.replay.rule import ReplayPolicy, kept, next_tier, route
from services.common.confidence.signals import Signal
from services.common.confidence.thresholds import Bands, Calibration, TaskJudging, Thresholds
from services.common.vocabulary import Reason, Target
from services.router.policy.decide import decide
from services.router.policy.facts import ComplexityFacts, SessionFacts, TextFeatures
from services.router.policy.judge import Answered, Subject, judge
from tests.unit.router.builders import make_facts, with_complexity

PLAIN = TextFeatures(input_chars=900, input_tokens=230)
_Share = st.floats(0, 1).map(lambda value: round(value, 3))
_LAST = st.sampled_from([None, Target.EDGE, Target.CLOUD_SMALL, Target.CLOUD_LARGE])
RULES = st.fixed_dictionaries(
    {
        "bounds": st.lists(st.integers(2, 19), min_size=3, max_size=3).map(sorted),
        "hysteresis": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        "routing": st.sampled_from(["predictive", "cascade", "both"]),
        "grey_mode": st.sampled_from(["shadow_cloud", "shadow_best", "cascade"]),
    }
)


def bands(low: float, high: float) -> Bands:
    return Bands(low=min(low, high), high=max(low, high))


@given(RULES, st.lists(st.tuples(st.integers(2, 20), _LAST), min_size=1, max_size=30))
@settings(deadline=None)
def test_the_first_target_is_that_of_decide(
    drawn: dict[str, Any], rows: list[tuple[int, Target | None]]
) -> None:
    low, high, large = (bound / 2 for bound in drawn["bounds"])
    changes = {key: drawn[key] for key in ("hysteresis", "routing", "grey_mode")}
    policy = with_complexity(low=low, high=high, large_from=large, **changes)
    wanted = []
    for halves, last in rows:
        facts = make_facts(
            features=PLAIN,
            complexity=ComplexityFacts((halves / 2 - 1) / 9),
            session=SessionFacts((), last),
            expires_at=1_000.0,
        )
        plan = decide(facts, policy, 0.0)
        wanted.append((plan.attempts[0].target.name, plan.reason is Reason.GREY_CASCADE))
    # decide() computes the score from a probability; a bound itself may round to either side.
    score = [1.0 + 9.0 * min(1.0, max(0.0, (halves / 2 - 1) / 9)) for halves, _ in rows]
    frame = pl.DataFrame(
        {
            "score": score,
            "last": [last.name if last else None for _, last in rows],
            "task": ["open_question"] * len(rows),
        },
        schema={"score": pl.Float64, "last": pl.String, "task": pl.String},
    )
    replayed = ReplayPolicy(low, high, drawn["hysteresis"], large, drawn["routing"],
                            drawn["grey_mode"], policy.thresholds)  # fmt: skip
    found = frame.with_columns(route(replayed)).select("first", "judged")
    assert [(first, judged) for first, judged in found.iter_rows()] == wanted


@given(
    st.lists(_Share, min_size=8, max_size=8),
    st.lists(
        st.tuples(
            st.one_of(st.none(), _Share),
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["", "billing"]),
            st.sampled_from(["m1", "m2"]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.booleans(),
)
@settings(deadline=None)
def test_what_is_kept_is_what_judge_keeps(
    edges: list[float], rows: list[tuple[float | None, str, str, str]], mapped: bool
) -> None:
    maps = [
        Calibration(task="a", model_id="m1", prompt_id="p1", signals=frozenset({Signal.LOGPROB}),
                    scores=(0.2, 0.6, 0.9), values=(0.1, 0.4, 0.95))
    ]  # fmt: skip
    thresholds = Thresholds(
        default=bands(edges[0], edges[1]),
        tasks={
            "a": TaskJudging(judged=True, bands=bands(edges[2], edges[3])),
            "b": TaskJudging(judged=True, intents={"billing": bands(edges[4], edges[5])}),
        },
        calibrations=tuple(maps) if mapped else (),
    )
    policy = ReplayPolicy(5, 7, 1, 8.5, "both", "cascade", thresholds)
    frame = pl.DataFrame(
        [(raw, task, intent, model, "p1") for raw, task, intent, model in rows],
        schema={"raw": pl.Float64, "task": pl.String, "intent": pl.String,
                "model_id": pl.String, "prompt_id": pl.String},
        orient="row",
    )  # fmt: skip
    found = frame.select(kept(policy).alias("kept"), next_tier(policy).alias("tier"))
    for (raw, task, intent, model), (was_kept, tier) in zip(rows, found.iter_rows(), strict=True):
        if raw is None:
            assert was_kept is None
            continue
        answered = Answered({Signal.LOGPROB: raw})
        verdict = judge(thresholds, Subject(task, intent, model, "p1"), answered, second_done=True)
        assert was_kept == float(verdict.kept)
        if not verdict.kept:
            assert tier == ("CLOUD_LARGE" if verdict.hopeless else "CLOUD_SMALL")
