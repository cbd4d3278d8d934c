"""When text of a running attempt may be shown: hold, commit or provisional. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.common.vocabulary import StreamMode

# A sentence is whole when its mark is followed by space (so that 3.14 is none);
# Chinese marks end it at once.
_SENTENCE_END = re.compile(r"[.!?][\"')\]”’]*\s|[。！？]|\n")


@dataclass(slots=True)
class Release:
    """Takes the text of one attempt and says what to show.

    Attributes:
        mode: The mode in force.
        commit_tokens: The commit point in tokens.
        text: All text so far.
        committed: Text has been shown that is never withdrawn.
        shown_chars: Characters shown so far, provisional ones too.
    """

    mode: StreamMode
    commit_tokens: int
    text: str = ""
    committed: bool = False
    shown_chars: int = 0
    _tokens: int = 0

    def feed(self, text: str, tokens: int) -> str:
        """Takes a piece and returns what to show now; empty where nothing."""
        self.text += text
        self._tokens += tokens
        if self.mode is StreamMode.HOLD:
            return ""
        if self.mode is StreamMode.COMMIT and not self.committed:
            if not self._at_commit_point():
                return ""
            self.committed = True
        return self._show()

    def accept(self) -> str:
        """The answer is whole and accepted: returns the text that was not shown yet."""
        self.committed = True
        return self._show()

    def _at_commit_point(self) -> bool:
        if self._tokens >= self.commit_tokens:
            return True
        end = _SENTENCE_END.search(self.text)
        return end is not None and bool(self.text[: end.end()].strip())

    def _show(self) -> str:
        text = self.text[self.shown_chars :]
        self.shown_chars = len(self.text)
        return text


def whole_sentences(text: str) -> str:
    """The part of `text` up to its last whole sentence; empty where there is none."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text + " ")]
    return text[: ends[-1]].rstrip() if ends else ""
