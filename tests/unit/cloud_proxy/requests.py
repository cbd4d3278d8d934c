"""Requests for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from services.cloud_proxy.request import ChatRequest, Output, Role, Sampling, Tier, Turn


def request(text: str = "hello", **changes: Any) -> ChatRequest[str]:
    """A small request with one turn."""
    plain = ChatRequest(
        tier=Tier.SMALL,
        system="",
        few_shot=(),
        messages=(Turn(Role.USER, text, (), ""),),
        tools=(),
        output=Output(),
        sampling=Sampling(),
        max_output_tokens=0,
    )
    return replace(plain, **changes)
