"""What a call costs, and a count of tokens where the provider gives none. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# A few characters a token is the usual rule of thumb for byte-pair vocabularies on
# English; Chinese characters take about one token each. Errs on the high side.
_CHARS_PER_TOKEN = 3.5
_TOKENS_PER_TURN = 4
_WIDE_FROM = 0x2E80


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens."""

    input_usd: float = 0.0
    cached_input_usd: float = 0.0
    output_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a call. `cached_input` is part of `input`; `estimated`: our own count."""

    input: int = 0
    cached_input: int = 0
    output: int = 0
    estimated: bool = False


def cost_micro_usd(tokens: Tokens, prices: Prices) -> int:
    """Cost in millionths of a dollar: dollars per million tokens times tokens."""
    fresh = max(0, tokens.input - tokens.cached_input)
    cost = (
        fresh * prices.input_usd
        + tokens.cached_input * prices.cached_input_usd
        + tokens.output * prices.output_usd
    )
    return round(cost)


def estimate_tokens(texts: Iterable[str]) -> int:
    """About how many tokens the texts of a prompt or an answer are."""
    total = 0.0
    for text in texts:
        if not text:
            continue
        wide = 0 if text.isascii() else sum(ord(char) >= _WIDE_FROM for char in text)
        total += wide + (len(text) - wide) / _CHARS_PER_TOKEN
    return int(total) + 1 if total else 0


def estimate_prompt(texts: Iterable[str], turns: int) -> int:
    """The same for a prompt with the marks around its turns."""
    return estimate_tokens(texts) + turns * _TOKENS_PER_TURN
