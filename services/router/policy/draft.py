"""The decision while it is being made: each step returns a new draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from services.common.vocabulary import FallbackType, Reason, Target
from services.router.policy.plan import Evidence, Verdict

# Evidence of a step: `value` and `threshold` have fields of their own, the rest are inputs.
Seen = Mapping[str, object]
_NOTHING: Seen = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Draft:
    """What the steps so far have said.

    Attributes:
        permitted: Targets that may still be used; only ever shrinks.
        remaining_ms: Budget left when the decision began.
        target: The nominated target, None until a step speaks.
        current_score: Complexity of the conversation as it stands, 1–10.
        score: The same with the session's window.
        shadow: Target that runs beside the first attempt, in the grey zone.
        shadow_best: The better of both answers is served, not only the first attempt's.
    """

    permitted: frozenset[Target]
    remaining_ms: float
    target: Target | None = None
    reason: Reason = Reason.DEFAULT
    fallback_type: FallbackType = FallbackType.NONE
    truncated: bool = False
    current_score: float | None = None
    score: float | None = None
    shadow: Target | None = None
    shadow_best: bool = False
    steps: tuple[Evidence, ...] = ()

    def passed(self, step: str, seen: Seen = _NOTHING) -> Draft:
        """The step had nothing to say."""
        return self._noted(step, "pass", None, seen)

    def nominated(
        self,
        step: str,
        target: Target,
        reason: Reason,
        *,
        fallback_type: FallbackType = FallbackType.NONE,
        seen: Seen = _NOTHING,
    ) -> Draft:
        """The step names the target; the first that speaks keeps the word."""
        noted = self._noted(step, "nominate", reason, seen)
        if self.target is not None:
            return noted
        return replace(noted, target=target, reason=reason, fallback_type=fallback_type)

    def restricted(
        self, step: str, permitted: frozenset[Target], reason: Reason, seen: Seen = _NOTHING
    ) -> Draft:
        """The step removes targets; nothing later brings them back."""
        noted = self._noted(step, "veto", reason, seen)
        return replace(noted, permitted=self.permitted & permitted)

    def moved(
        self,
        step: str,
        target: Target,
        reason: Reason,
        *,
        fallback_type: FallbackType | None = None,
        truncated: bool = False,
        seen: Seen = _NOTHING,
    ) -> Draft:
        """The step replaces the nominated target by another permitted one."""
        noted = self._noted(step, "reorder", reason, seen)
        return replace(
            noted,
            target=target,
            reason=reason,
            truncated=truncated,
            fallback_type=self.fallback_type if fallback_type is None else fallback_type,
        )

    def scored(self, current: float, score: float) -> Draft:
        """The conversation's complexity: of now, and with the session's."""
        return replace(self, current_score=current, score=score)

    def shadowed(self, target: Target, *, best: bool) -> Draft:
        """Another target runs beside, if this step's word was kept."""
        if self.steps[-1].reason is not self.reason:
            return self
        return replace(self, shadow=target, shadow_best=best)

    def _noted(self, step: str, verdict: Verdict, reason: Reason | None, seen: Seen) -> Draft:
        evidence = Evidence(
            step=step,
            verdict=verdict,
            inputs={k: str(v) for k, v in seen.items() if k not in ("value", "threshold")},
            value=str(seen.get("value", "")),
            threshold=str(seen.get("threshold", "")),
            reason=reason,
        )
        return replace(self, steps=(*self.steps, evidence))
