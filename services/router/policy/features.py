"""What the words of a request show, as figures and flags. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from services.router.policy.config import WordLists
from services.router.policy.facts import TextFeatures

# Measured on SmolLM2's tokenizer: English about 4 characters a token; Chinese is
# rare in its vocabulary and takes about 2 tokens a character.
_ASCII_CHARS_PER_TOKEN = 4
_OTHER_TOKENS_PER_CHAR = 2
_TEMPLATE_TOKENS_PER_TURN = 5
_MAX_FOLLOW_UP_CHARS = 40
_ASCII = re.compile(r"[\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Texts:
    """The text fields of a request, as the features need them.

    Attributes:
        asked: What people said: the user's turns, oldest first.
        others: Everything else that is sent to a model, examples aside.
        few_shot: The worked examples.
        snippet_scores: Retrieval scores.
    """

    asked: Sequence[str]
    others: Sequence[str] = ()
    few_shot: Sequence[str] = ()
    snippet_scores: Sequence[float] = ()


def estimate_tokens(text: str) -> int:
    """Prompt tokens of `text`, estimated without a tokenizer; errs towards too many."""
    if text.isascii():
        return -(-len(text) // _ASCII_CHARS_PER_TOKEN)
    ascii_chars = len(_ASCII.findall(text))
    others = len(text) - ascii_chars
    return -(-ascii_chars // _ASCII_CHARS_PER_TOKEN) + others * _OTHER_TOKENS_PER_CHAR


def features_of(texts: Texts, words: WordLists) -> TextFeatures:
    """Reads the features of a request; the whole conversation is judged, not its last turn."""
    last = texts.asked[-1] if texts.asked else ""
    everything = "\n".join(texts.asked)
    few_shot_tokens = sum(_turn_tokens(text) for text in texts.few_shot)
    sent = (*texts.asked, *texts.others)
    return TextFeatures(
        input_chars=sum(len(text) for text in (*sent, *texts.few_shot)),
        input_tokens=sum(_turn_tokens(text) for text in sent) + few_shot_tokens,
        few_shot_tokens=few_shot_tokens,
        asks_reasoning=mentions(everything, words.reasoning),
        computes_amounts=mentions(everything, words.amounts),
        wants_live=mentions(last, words.live),
        has_code="```" in everything,
        cloud_keyword=mentions(last, words.cloud_keywords),
        edge_keyword=mentions(last, words.edge_keywords),
        best_snippet_score=max(texts.snippet_scores, default=None),
        follows_up=len(texts.asked) > 1 and carries_on(last, words.follow_ups),
    )


def mentions(text: str, phrases: tuple[str, ...]) -> bool:
    """True where one of `phrases` stands in `text`, without case, English as whole words."""
    return bool(phrases) and _pattern(phrases).search(text) is not None


def carries_on(turn: str, phrases: tuple[str, ...]) -> bool:
    """A short turn that begins with one of `phrases`: it says nothing new."""
    short = len(turn) <= _MAX_FOLLOW_UP_CHARS and "?" not in turn and "？" not in turn
    return short and bool(phrases) and _pattern(phrases).match(turn.lstrip()) is not None


@lru_cache(maxsize=64)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for a list; a word boundary only where Latin letters end a phrase."""
    parts = [
        (r"\b" if phrase[0].isascii() else "")
        + re.escape(phrase).replace(r"\ ", r"\s+")
        + (r"\b" if phrase[-1].isascii() else "")
        for phrase in phrases
    ]
    return re.compile("|".join(parts), re.IGNORECASE)


def _turn_tokens(text: str) -> int:
    return estimate_tokens(text) + _TEMPLATE_TOKENS_PER_TURN
