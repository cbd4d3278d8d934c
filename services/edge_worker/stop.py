"""Stop strings over text that comes in pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopMatcher:
    """Lets text through until a stop string; text that may begin one is held back.

    Args:
        stops: Non-empty strings; may be none.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._longest = max(map(len, stops), default=0)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Takes a piece; returns text that is certain, and whether the answer ends there."""
        if not self._stops:
            return text, False
        text = self._held + text
        places = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if places:
            self._held = ""
            return text[: min(places)], True
        keep = self._open_length(text)
        certain = len(text) - keep
        self._held = text[certain:]
        return text[:certain], False

    def finish(self) -> str:
        """What is still held, when the answer ends without a stop string."""
        held, self._held = self._held, ""
        return held

    def _open_length(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0
