"""What a call costs, and a count of tokens where the provider gives none. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

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
class PricePeriod:
    """Prices from the start of a UTC day on, until another period starts."""

    start: date
    prices: Prices


@dataclass(frozen=True, slots=True)
class PriceTable:
    """What a model costs, and since when; in any order."""

    periods: tuple[PricePeriod, ...] = ()

    @classmethod
    def always(cls, prices: Prices) -> PriceTable:
        """A table of one price."""
        return cls((PricePeriod(date.min, prices),))

    def find(self, unix_s: float) -> Prices | None:
        """The prices in force at a Unix time; None before the first period."""
        today = datetime.fromtimestamp(unix_s, UTC).date()
        begun = [period for period in self.periods if period.start <= today]
        return max(begun, key=lambda period: period.start).prices if begun else None

    def at(self, unix_s: float) -> Prices:
        """The same; what has no price costs nothing."""
        return self.find(unix_s) or Prices()


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
