"""How any OpenAI-compatible `/chat/completions` is spoken."""

from __future__ import annotations

from functools import partial

from services.cloud_proxy.providers.body import Dialect, write_body
from services.cloud_proxy.providers.chunks import ChunkAssembler
from services.cloud_proxy.providers.http import Wire


def openai_wire(dialect: Dialect, api_key: str) -> Wire:
    """The wire of one model; the key is a bearer, empty: none is sent."""
    return Wire(
        path="/chat/completions",
        write=partial(write_body, dialect=dialect),
        assembler=partial(ChunkAssembler, dialect.model),
        headers={"authorization": f"Bearer {api_key}"} if api_key else {},
    )
