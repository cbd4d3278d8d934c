"""The `payload` section of the policy."""

from __future__ import annotations

from pydantic import Field

from services.common.settings import Settings


class PayloadPolicy(Settings):
    """What is sent to the cloud after the edge's answer was judged not good enough."""

    enabled: bool = True
    budget_tokens: int = Field(default=1_500, ge=100)
    keep_turns: int = Field(default=2, ge=1)
    """User turns, with what follows each, that are sent word for word."""
    max_snippets: int = Field(default=5, ge=0)
    min_snippets: int = Field(default=3, ge=0)
    """Passages are left out down to this number where the budget demands it."""
    draft: bool = True
    """False: the cloud does not see the draft, to measure how much it leans on it."""
    max_draft_chars: int = Field(default=1_200, ge=0)
    gist_chars: int = Field(default=80, ge=0)
    """Of an older turn of the user without any condition, so many characters are kept."""
