"""Changes the strings and numbers inside JSON text and leaves the rest as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

Change = Callable[[str, str], str]
"""Takes the nearest key before it (empty: none) and the plain text; gives the new text."""

_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")(?P<colon>\s*:)?|-?\d[\d.eE+\-]*', re.DOTALL)
# `[13812345678]` is a number in brackets to people, so only lists of more are JSON here.
_BEGIN = re.compile(r'\s*(?:\{|\[\s*[\[{"])')
# JSON as a string inside JSON; deeper than this it is searched as the text it is.
_MAX_DEPTH = 4


def map_text(text: str, change: Change, label: str = "", depth: int = 0) -> str:
    """`text` changed: string by string where it is a JSON object or list, else as a whole."""
    mapped = map_strings(text, change, depth) if depth < _MAX_DEPTH else None
    return change(label, text) if mapped is None else mapped


def map_strings(text: str, change: Change, depth: int = 0) -> str | None:
    """JSON text with each string, key and number changed; None where it is no object or list.

    Spacing, order, doubled keys and the spelling of untouched numbers are kept. A number
    that changes becomes a string.
    """
    if not _is_json(text):
        return None
    label = ""

    def token(found: re.Match[str]) -> str:
        nonlocal label
        written = found["string"]
        if written is None:
            new = change(label, found[0])
            return found[0] if new == found[0] else _write(new)
        plain = json.loads(written, strict=False)
        is_key = found["colon"] is not None
        new = map_text(plain, change, "" if is_key else label, depth + 1)
        label = plain if is_key else label
        kept = written if new == plain else _write(new, escaped="\\u" in written)
        return kept + (found["colon"] or "")

    return _TOKEN.sub(token, text)


def _is_json(text: str) -> bool:
    if not _BEGIN.match(text):
        return False
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _write(text: str, *, escaped: bool = False) -> str:
    # Half of a surrogate pair exists in JSON, and cannot be sent but as an escape.
    alone = any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(text, ensure_ascii=alone or escaped)
