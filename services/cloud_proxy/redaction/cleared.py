"""Text that may leave the trust zone, as a type of its own.

Only `redaction/gate.py` holds the seal that makes one; a test reads the sources
to keep it so.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from services.cloud_proxy.request import ChatRequest


@final
class Seal:
    """The permission to clear text; one exists."""

    __slots__ = ()


SEAL: Final = Seal()


@final
class ClearedText:
    """Text that the gate has let through.

    Raises:
        TypeError: Made without the gate's seal.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str, seal: Seal) -> None:
        if seal is not SEAL:
            raise TypeError("only the gate clears text")
        self._text = text

    @property
    def text(self) -> str:
        """The text, to be sent."""
        return self._text

    def __repr__(self) -> str:
        # Logs and tracebacks never show prompts.
        return f"ClearedText({len(self._text)} characters)"


ClearedRequest: TypeAlias = ChatRequest[ClearedText]
