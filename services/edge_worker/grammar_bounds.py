"""Bounds on schemas and expressions that only matter once a grammar is made of them.

`services.common.contract` bounds what a check costs. Turning the same text into an
automaton costs more: counted repetition multiplies when nested, `multipleOf` makes a
state of each remainder (16 s were measured for 999,983), and the keys of
patternProperties are compared each with each (60 s for 512). All are counted here first,
in time linear in the text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from services.common.errors import InvalidField

MAX_SCHEMA_BYTES: Final = 16_384
MAX_EXPANDED: Final = 4_000
"""Characters of an expression with its counted repetitions written out."""
MAX_MULTIPLE: Final = 10_000
"""Sum and least common multiple of all `multipleOf`, their decimal point left out."""
MAX_KEY_PATTERNS: Final = 16
"""Keys of all patternProperties together."""
_ATOMS: Final = re.compile(
    r"(?P<klass>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)|(?P<open>\((?:\?(?:P?<\w+>|[a-z-]*:))?)"
    r"|(?P<close>\))|(?P<count>\{(?P<low>\d*)(?:,(?P<high>\d*))?\})|(?P<other>.)",
    re.DOTALL,
)


def check_repetition(field: str, pattern: str) -> None:
    """Raises InvalidField where counted repetition blows the expression up."""
    if expanded_size(pattern) > MAX_EXPANDED:
        raise InvalidField(
            field, f"its counted repetitions must stay under {MAX_EXPANDED} when written out"
        )


def expanded_size(pattern: str) -> int:
    """Length of the expression, in atoms, with `{n,m}` written out."""
    sizes, last = [0], 0
    for found in _ATOMS.finditer(pattern):
        kind = found.lastgroup
        if kind == "open":
            sizes.append(0)
        elif kind == "close" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif found["count"]:
            times = max(1, int(found["low"][:9] or 0), int((found["high"] or "")[:9] or 0))
            sizes[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            sizes[-1] += 1
    return sum(sizes)


def check_schema_cost(field: str, text: str) -> None:
    """Checks every pattern and `multipleOf` of a schema that `check_schema` let through.

    Raises:
        InvalidField: A grammar of it would be too large.
    """
    if len(text.encode()) > MAX_SCHEMA_BYTES:
        raise InvalidField(field, f"must be at most {MAX_SCHEMA_BYTES} bytes for this worker")
    found = list(_keywords(json.loads(text)))
    keys = sum(key == "patternProperties" for key, _ in found)
    if keys > MAX_KEY_PATTERNS:
        raise InvalidField(field, f"patternProperties: at most {MAX_KEY_PATTERNS} in all")
    multiples = [_digits(value) for _, value in found if isinstance(value, int | float)]
    if sum(expanded_size(value) for _, value in found if isinstance(value, str)) > MAX_EXPANDED:
        raise InvalidField(
            field, f"its patterns must stay under {MAX_EXPANDED} atoms when written out"
        )
    if sum(multiples) > MAX_MULTIPLE or math.lcm(*multiples) > MAX_MULTIPLE:
        raise InvalidField(
            field, f"multipleOf: sum and least common multiple must be at most {MAX_MULTIPLE}"
        )


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every pattern, key of patternProperties and multipleOf, at any depth."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            for key, value in node.items():
                if key in ("pattern", "multipleOf"):
                    yield key, value
                elif key == "patternProperties" and isinstance(value, dict):
                    yield from ((key, pattern) for pattern in value)
            stack.extend(node.values())


def _digits(value: float) -> int:
    """2.50 → 25; what does not fit counts as too large."""
    decimal = Decimal(str(value))
    if not decimal.is_finite() or decimal <= 0:
        return 1
    if decimal >= MAX_MULTIPLE + 1:
        return MAX_MULTIPLE + 1
    return int("".join(map(str, decimal.normalize().as_tuple().digits)))
