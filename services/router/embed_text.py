"""The one sentence vector of a request, made when it is first asked for.

Task recognition, complexity and the semantic cache share it. The text is bounded so that
the event loop is held for 2 ms at most; what breaks gives no vector, never an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from services.common.embedding.runner import TextEmbedder, Vector
from tandem.common.v1 import chat_pb2
from tandem.router.v1 import router_pb2

_log = structlog.get_logger()
# About 200 pieces: English takes four characters each, Chinese one and a half.
_MAX_ASCII_CHARS = 800
_MAX_OTHER_CHARS = 300
_HEAD_SHARE = 0.7


@dataclass(slots=True)
class TextVector:
    """The vector of a request's conversation; computed once, None without an embedder.

    Attributes:
        text: What is embedded; never logged.
        model_id: The embedder's; empty without one.
    """

    text: str
    embedder: TextEmbedder | None
    _made: bool = False
    _vector: Vector | None = None

    @property
    def model_id(self) -> str:
        """Which embedder's vector it is."""
        return self.embedder.model_id if self.embedder else ""

    @property
    def made(self) -> bool:
        """It was asked for before: `get` takes no time."""
        return self._made

    def get(self) -> Vector | None:
        """The vector, or None where there is no embedder or it failed."""
        if not self._made:
            self._made = True
            self._vector = self._embed()
        return self._vector

    def _embed(self) -> Vector | None:
        if self.embedder is None or not self.text:
            return None
        try:
            return self.embedder.embed([self.text])[0]
        except Exception as error:  # the request is served without it, and says so
            _log.error("embedding_failed", error=type(error).__name__)
            return None


def conversation(request: router_pb2.RouteRequest) -> str:
    """What people said, the newest turn whole as far as it fits, older ones before it.

    Of one turn this is its text; a long text keeps its head and its tail.
    """
    user = chat_pb2.ROLE_USER
    turns = [turn.content.strip() for turn in request.messages if turn.role == user]
    text = "\n".join(turn for turn in turns if turn)
    limit = _MAX_ASCII_CHARS if text.isascii() else _MAX_OTHER_CHARS
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD_SHARE)
    return f"{text[:head]}\n{text[-(limit - head) :]}"
