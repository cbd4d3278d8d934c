"""Varied JSON schemas, all of whose answers are bounded in length."""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]
_WORDS = ("red", "on hold", "müde", "价格", 'a "quote"', "back\\slash")
_PATTERNS = ("^[A-Z]{2}-[0-9]{4}$", "^(low|high)$", "^[a-z]{1,12}$", "^[0-9]{2}:[0-9]{2}$")
_KEYS = ("name", "amount", "tags", "state", "due date", "note", "数量")
_DEPTH = 2


def random_schema(rng: random.Random) -> Schema:
    """An object of enums, integers, strings, arrays and objects."""
    return _object(rng, _DEPTH)


def _any(rng: random.Random, depth: int) -> Schema:
    kind = rng.randrange(8)
    if depth and kind == 0:
        return _object(rng, depth - 1)
    if depth and kind == 1:
        least = rng.randrange(3)
        most = least + rng.randrange(3)
        items = _any(rng, depth - 1)
        return {"type": "array", "items": items, "minItems": least, "maxItems": most}
    return _leaf(rng)


def _object(rng: random.Random, depth: int) -> Schema:
    keys = rng.sample(_KEYS, rng.randint(1, 4))
    return {
        "type": "object",
        "properties": {key: _any(rng, depth) for key in keys},
        "required": [key for key in keys if rng.random() < 0.8],
        "additionalProperties": False,
    }


def _leaf(rng: random.Random) -> Schema:
    low = rng.randint(-1_000, 1_000)
    leaves: list[Schema] = [
        {"enum": rng.sample(_WORDS, rng.randint(1, 4))},
        {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 500)},
        {"type": "string", "maxLength": rng.randint(1, 20)},
        {"type": "string", "pattern": rng.choice(_PATTERNS)},
        rng.choice([{"type": "boolean"}, {"type": "null"}, {"const": 7}]),
        {"type": "string", "format": "date"},
    ]
    return rng.choice(leaves)
