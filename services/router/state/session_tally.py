"""Tells which sessions are new, for the number of cloud calls a session takes."""

from __future__ import annotations

from collections import OrderedDict

from services.router.state.sessions import SessionKey

_MAX_SESSIONS = 50_000
_MAX_AGE_S = 1_800.0


class SessionTally:
    """Remembers the sessions that this process served lately; bounded in number and age."""

    def __init__(self, max_sessions: int = _MAX_SESSIONS, max_age_s: float = _MAX_AGE_S) -> None:
        self._max_sessions, self._max_age_s = max_sessions, max_age_s
        self._seen: OrderedDict[SessionKey, float] = OrderedDict()

    def begins(self, key: SessionKey, now: float) -> bool:
        """Takes in one turn at `now`, monotonic seconds; True where it is the first for long."""
        before = self._seen.pop(key, None)
        self._seen[key] = now
        if len(self._seen) > self._max_sessions:
            self._seen.popitem(last=False)
        return before is None or now - before > self._max_age_s
