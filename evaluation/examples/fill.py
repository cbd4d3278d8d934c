"""Fills templates: Chinese fillings for Chinese templates, others for the rest."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

_BLANK = re.compile(r"\{(\w+)\}")
_CJK = re.compile(r"[\u3400-\u9fff]")


def filled(
    template: str, fillings: Mapping[str, Sequence[str]], count: int, rng: random.Random
) -> list[str]:
    """Up to `count` different texts from one template."""
    chinese = _CJK.search(template) is not None

    def fill(blank: re.Match[str]) -> str:
        values = fillings[blank[1]]
        same = [value for value in values if bool(_CJK.search(value)) == chinese]
        return rng.choice(same or list(values))

    if not _BLANK.search(template):
        return [template]
    return sorted({_BLANK.sub(fill, template) for _ in range(count)})
