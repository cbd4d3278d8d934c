"""What the words of a request show."""

from __future__ import annotations

import pytest

from services.router.policy.features import Texts, estimate_tokens, features_of, mentions
from tests.unit.router.builders import SHIPPED


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("计算三笔分期的实际年化利率", "computes_amounts"),
        ("Calculate the mortgage payment", "computes_amounts"),
        ("Prove that there are infinitely many primes", "asks_reasoning"),
        ("为什么天空是蓝色的", "asks_reasoning"),
        ("What is the exchange rate", "wants_live"),
        ("fix this\n```\nx = 1\n```", "has_code"),
    ],
)
def test_hard_words_are_seen(text: str, feature: str) -> None:
    assert getattr(features_of(Texts([text]), SHIPPED.words), feature)


@pytest.mark.parametrize("text", ["Hello there!", "你好", "What is the capital of Italy?"])
def test_plain_words_are_plain(text: str) -> None:
    features = features_of(Texts([text]), SHIPPED.words)
    assert not (features.computes_amounts or features.asks_reasoning or features.wants_live)


def test_an_earlier_hard_turn_makes_the_conversation_hard() -> None:
    features = features_of(Texts(["Prove it step by step", "yes, do it"]), SHIPPED.words)
    assert features.asks_reasoning


def test_english_phrases_match_whole_words_only() -> None:
    assert mentions("please compute it", ("compute",))
    assert not mentions("my computer is slow", ("compute",))
    assert mentions("the  INTEREST\nrate", ("interest rate",))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("你好", 4)])
def test_token_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_few_shot_counts_apart_and_in_all() -> None:
    features = features_of(Texts(["hi"], few_shot=["a" * 40]), SHIPPED.words)
    assert features.few_shot_tokens == 15
    assert features.input_tokens == 15 + 6
    assert features.input_chars == 42
