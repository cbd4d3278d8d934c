"""Steps 2 to 5: the rules that nominate a target. The first that speaks keeps the word."""

from __future__ import annotations

from services.common.vocabulary import FallbackType, Reason, Target
from services.router.policy.config import Policy
from services.router.policy.draft import Draft
from services.router.policy.facts import Facts


def capability(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 2: tasks that the edge must not take go to the cloud."""
    row = policy.capability(facts.task_type)
    tokens, wanted = facts.features.input_tokens, facts.max_output_tokens
    misses = [
        name
        for name, missed in (
            ("task_not_supported", row.edge == "no"),
            ("several_tools", len(facts.tools) > 1),
            ("input_too_long", tokens > row.max_input_tokens),
            ("output_too_long", wanted > row.max_output_tokens),
        )
        if missed
    ]
    inputs: dict[str, object] = {
        "task_type": facts.task_type,
        "edge": row.edge,
        "input_tokens": tokens,
        "max_input_tokens": row.max_input_tokens,
        "max_output_tokens": row.max_output_tokens,
        "misses": ",".join(misses) or "none",
    }
    if not misses:
        return draft.passed("capability", seen=inputs)
    return draft.nominated(
        "capability",
        Target.CLOUD_LARGE,
        Reason.CAPABILITY_MISS,
        fallback_type=FallbackType.CAPABILITY,
        seen=inputs,
    )


def hard_rules(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 3: amounts to compute, live information, input beyond the window, weak retrieval."""
    features = facts.features
    score = features.best_snippet_score
    spoken = [
        name
        for name, holds in (
            ("computes_amounts", features.computes_amounts),
            ("wants_live", features.wants_live),
            ("beyond_window", features.input_tokens >= facts.edge.context_tokens),
            ("weak_retrieval", score is not None and score < policy.weak_retrieval_below),
        )
        if holds
    ]
    if not spoken:
        return draft.passed("hard_rules", {"edge_context_tokens": facts.edge.context_tokens})
    return draft.nominated(
        "hard_rules", Target.CLOUD_LARGE, Reason.HARD_RULE, seen={"value": ",".join(spoken)}
    )


def session(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 4, before what is trivial: "yes, do it" goes where the turn before went."""
    target = facts.session.target
    seen = {"follows_up": facts.features.follows_up, "last_target": target or "none"}
    if target is None or not facts.features.follows_up:
        return draft.passed("session", seen)
    return draft.nominated("session", target, Reason.SESSION_STICKY, seen=seen)


def trivial(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 4: short in, short out and nothing hard in the whole conversation."""
    rule, features = policy.trivial, facts.features
    # By the policy's figure and not by the records: a rule must not change with the traffic.
    expected = facts.capped(policy.capability(facts.task_type).expected_output_tokens)
    hard_history = max(facts.session.scores, default=0.0) >= policy.complexity.low
    hard = features.asks_reasoning or features.computes_amounts or features.has_code
    plain = not (hard or hard_history)
    fits = (
        features.input_chars <= rule.max_input_chars
        and features.input_tokens <= rule.max_input_tokens
        and expected <= rule.max_output_tokens
    )
    inputs: dict[str, object] = {
        "input_chars": features.input_chars,
        "input_tokens": features.input_tokens,
        "expected_output_tokens": expected,
        "plain": plain,
        "threshold": f"{rule.max_input_chars} chars, {rule.max_input_tokens} in, "
        f"{rule.max_output_tokens} out",
    }
    if not (plain and fits):
        return draft.passed("trivial", seen=inputs)
    return draft.nominated("trivial", Target.EDGE, Reason.TRIVIAL_RULE, seen=inputs)


def keywords(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Step 4: phrases that name a target; the cloud's list wins over the edge's."""
    features = facts.features
    inputs: dict[str, object] = {
        "cloud_keyword": features.cloud_keyword,
        "edge_keyword": features.edge_keyword,
        "asks_reasoning": features.asks_reasoning,
    }
    if features.cloud_keyword or features.asks_reasoning:
        return draft.nominated("keywords", Target.CLOUD_LARGE, Reason.KEYWORD_RULE, seen=inputs)
    if features.edge_keyword:
        return draft.nominated("keywords", Target.EDGE, Reason.KEYWORD_RULE, seen=inputs)
    return draft.passed("keywords", seen=inputs)


def default(facts: Facts, policy: Policy, draft: Draft) -> Draft:
    """Where nothing spoke: the edge first for short prompts, the small cloud model beyond."""
    tokens, bound = facts.features.input_tokens, policy.default_edge_max_input_tokens
    target = Target.EDGE if tokens <= bound else Target.CLOUD_SMALL
    seen = {"value": tokens, "threshold": bound}
    return draft.nominated("default", target, Reason.DEFAULT, seen=seen)
