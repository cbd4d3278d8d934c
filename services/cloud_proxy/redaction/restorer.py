"""Puts values back where placeholders stand, in a stream that may be split anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from services.cloud_proxy.redaction.jsontext import map_strings
from services.cloud_proxy.redaction.placeholders import (
    LIKE,
    MAX_UNFINISHED_CHARS,
    UNFINISHED,
    compact,
    escape_depth,
    key_of,
)
from services.cloud_proxy.request import ToolCall


class Restorer:
    """Restores one stream; what it gives does not depend on how the stream is split.

    It holds back only an end that could go on to be one of its placeholders.
    Values are not searched again, so a value that looks like a placeholder stays.

    Args:
        values: What each placeholder stands for, by `placeholders.compact`.
        in_json: The stream is JSON text, so values are written as inside a JSON string.
    """

    def __init__(self, values: Mapping[str, str], *, in_json: bool = False) -> None:
        self._values = values
        self._depth = int(in_json)
        self._held = ""
        # The character before what is held: a word that goes on is no bare name.
        self._before = ""

    def feed(self, piece: str) -> str:
        """The text that is certain after `piece`."""
        return self._take(piece, last=False) if self._values else piece

    def flush(self) -> str:
        """The rest; called once, at the end."""
        return self._take("", last=True)

    def _take(self, piece: str, *, last: bool) -> str:
        text = self._before + self._held + piece
        start = place = len(self._before)
        out: list[str] = []
        stop = len(text) if last else self._unfinished(text, place)
        while (found := self._next(text, place)) is not None and found.start() < stop:
            out += text[place : found.start()], self._value(found)
            place = found.end()
            if place > stop:
                stop = self._unfinished(text, place)
        out.append(text[place:stop])
        self._held = text[stop:]
        self._before = text[stop - 1 : stop] if stop > start else self._before
        return "".join(out)

    def _next(self, text: str, place: int) -> re.Match[str] | None:
        """The next placeholder of ours."""
        while (found := LIKE.search(text, place)) is not None:
            if key_of(found) in self._values:
                return found
            place = found.start() + 1
        return None

    def _unfinished(self, text: str, place: int) -> int:
        """Where that begins which may become a placeholder of ours; else the end."""
        place = max(place, len(text) - MAX_UNFINISHED_CHARS)
        while (found := UNFINISHED.search(text, place)) is not None:
            begun = compact(found["inside"] or found["bare"] or "")
            if any(key.startswith(begun) for key in self._values):
                return found.start()
            place = found.start() + 1
        return len(text)

    def _value(self, found: re.Match[str]) -> str:
        value = self._values[key_of(found)]
        for _ in range(max(self._depth, escape_depth(found[0]))):
            value = json.dumps(value, ensure_ascii=False)[1:-1]
        return value


def restore(text: str, values: Mapping[str, str], *, in_json: bool = False) -> str:
    """A whole text restored."""
    restorer = Restorer(values, in_json=in_json)
    return restorer.feed(text) + restorer.flush()


def restore_json(text: str, values: Mapping[str, str]) -> str:
    """JSON text restored, and still the same JSON around the values; broken JSON as it can."""
    if not values:
        return text
    mapped = map_strings(text, lambda _, plain: restore(plain, values))
    return restore(text, values, in_json=True) if mapped is None else mapped


def restore_calls(
    calls: Iterable[ToolCall[str]], values: Mapping[str, str]
) -> tuple[ToolCall[str], ...]:
    """Tool calls of an answer with values in their arguments."""
    return tuple(
        replace(call, arguments=restore_json(call.arguments, values)) if values else call
        for call in calls
    )
