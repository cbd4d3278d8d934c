"""Facts and policies for tests, each with one thing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from services.common.vocabulary import Target
from services.router.policy.config import Policy
from services.router.policy.facts import (
    MODELS,
    CloudFacts,
    EdgeFacts,
    Facts,
    Screening,
    TextFeatures,
)
from services.router.policy_store import load_policy

THRESHOLDS = Path("config/thresholds.yaml")
SHIPPED: Policy = load_policy(Path("config/policy.yaml"), THRESHOLDS).policy


def with_complexity(**changes: Any) -> Policy:
    """The shipped policy with some of its complexity settings changed."""
    changed = SHIPPED.complexity.model_copy(update=changes)
    return SHIPPED.model_copy(update={"complexity": changed})


def make_facts(**changes: Any) -> Facts:
    """A plain short English question with everything up and eight seconds left at now = 0."""
    values: dict[str, Any] = {
        "task_type": "open_question",
        "features": TextFeatures(input_chars=30, input_tokens=13),
        "screening": Screening(),
        "pin_pii": True,
        "permitted": MODELS,
        "edge": EdgeFacts(up=True, context_tokens=8_192, ttft_ms=120.0, tpot_ms=10.0),
        "cloud": {
            Target.CLOUD_SMALL: CloudFacts(eta_ms=1_500.0),
            Target.CLOUD_LARGE: CloudFacts(eta_ms=2_500.0),
        },
        "expires_at": 8.0,
        "ttft_budget_ms": 800.0,
        "max_output_tokens": 0,
    }
    return Facts(**{**values, **changes})
