"""What is remembered of sessions: scores and where the last turn went, no text.

In process, bounded in number and age. With several router processes each remembers what
it served; a shared store takes the same two methods.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from services.common.vocabulary import Target
from services.router.policy.facts import SessionFacts

_KEPT_SCORES = 2  # with the current one they make the window of three
_MAX_SESSIONS = 50_000
_MAX_AGE_S = 1_800.0
_NOTHING = SessionFacts()


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session belongs to its tenant: the same id of another is another session."""

    tenant: str
    session_id: str


class SessionStore(Protocol):
    """Where sessions are remembered; `now` is monotonic seconds."""

    def facts(self, key: SessionKey, now: float) -> SessionFacts:
        """What is remembered, nothing where it is new or too old."""

    def note(self, key: SessionKey, score: float | None, target: Target, now: float) -> None:
        """Takes in one turn: its own score, where it was computed, and where it went."""


class MemorySessions:
    """Sessions of this process; the longest unused leave first."""

    def __init__(self, max_sessions: int = _MAX_SESSIONS, max_age_s: float = _MAX_AGE_S) -> None:
        self._max_sessions, self._max_age_s = max_sessions, max_age_s
        self._kept: OrderedDict[SessionKey, tuple[float, SessionFacts]] = OrderedDict()

    def facts(self, key: SessionKey, now: float) -> SessionFacts:
        """See `SessionStore`."""
        at, found = self._kept.get(key, (now, _NOTHING))
        return found if now - at <= self._max_age_s else _NOTHING

    def note(self, key: SessionKey, score: float | None, target: Target, now: float) -> None:
        """See `SessionStore`."""
        if not key.session_id:
            return
        scores = self.facts(key, now).scores
        if score is not None:
            scores = (*scores, score)[-_KEPT_SCORES:]
        self._kept[key] = (now, SessionFacts(scores, target))
        self._kept.move_to_end(key)
        self._forget(now)

    def _forget(self, now: float) -> None:
        """Entries stand in the order of their use, so the oldest are at the front."""
        while self._kept:
            at, _ = next(iter(self._kept.values()))
            if len(self._kept) <= self._max_sessions and now - at <= self._max_age_s:
                return
            self._kept.popitem(last=False)
