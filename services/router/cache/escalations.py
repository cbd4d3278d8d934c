"""What a session's escalated questions were answered, so that asking again costs no second call.

A near-repeat of such a question, or a doubt about its answer (真的吗, are you sure?), gets the
stored cloud answer for a while. Keyed by tenant and session, bounded in number and age.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from services.common.similarity.guards import forbidding
from services.common.similarity.words import normalize
from services.router.ask import Ask
from services.router.cache.entry import CachedAnswer, load
from services.router.cache.key import Key
from services.router.cache.store import KeyValueStore, Values

_DOUBTS: Final = re.compile(
    r"(真的|真的假的|你?确定|你?肯定|是吗|真是这样|当真|没错|没搞错|不会吧"
    r"|对吗|是真的)[吗么嘛呢]?"
    r"|你?确定(是)?(这样|对)?[吗么嘛]?"
    r"|(are you )?((real|absolute)ly |very |quite )?(sure|certain|positive)( about (that|this|it))?"
    r"|really|seriously|is (that|this|it) (really )?(right|true|correct|so)"
    r"|(are you )?kidding( me)?|no way"
)
_MAX_DOUBT_CHARS = 40


@dataclass(frozen=True, slots=True)
class Escalated:
    """One escalated question.

    Attributes:
        frame: Everything but the conversation: what else was different makes another answer.
        before: Hash of the turns before the question; empty where there were none.
        turns: Messages of the request, the question included.
        vector: Of the question; empty where there was none.
        answer: As `CachedAnswer.dump` wrote it.
    """

    frame: str
    before: str
    turns: int
    question: str
    vector: str
    answer: str


def is_doubt(text: str) -> bool:
    """Nothing but a doubt about what was just said."""
    plain = normalize(text).strip(" ,，!？?。")
    return len(plain) <= _MAX_DOUBT_CHARS and _DOUBTS.fullmatch(plain) is not None


def recall(
    ask: Ask, key: Key, kept: Sequence[Escalated], vector: Values | None, now: float
) -> CachedAnswer | None:
    """The answer for a repeat or doubt; None where the request is neither. Newest first. Pure."""
    messages = ask.request.messages
    for one in reversed(kept):
        answer = load(one.answer.encode())
        if answer is None or one.frame != key.frame or answer.fresh_until <= now:
            continue
        said = messages[-2].content if len(messages) > 1 else ""
        if is_doubt(messages[-1].content):
            if normalize(said) == normalize(answer.text):
                return answer
        elif _same_place(ask, key, one) and _same_question(messages[-1].content, vector, one, key):
            return answer
    return None


def _same_place(ask: Ask, key: Key, one: Escalated) -> bool:
    """The words mean what they meant: they stood alone, or follow the same turns."""
    turns = len(ask.request.messages)
    if one.turns == 1:
        return True
    return turns in (one.turns, one.turns + 2) and key.before(one.turns - 1) == one.before


def _same_question(text: str, vector: Values | None, one: Escalated, key: Key) -> bool:
    if normalize(text) == normalize(one.question):
        return True
    limits = key.rules.similarity
    if vector is None or not one.vector or len(text) > limits.max_chars:
        return False
    cosine = float(np.frombuffer(base64.b64decode(one.vector), np.float32) @ vector)
    return cosine >= limits.threshold and not forbidding(text, one.question, limits.guards)


@dataclass(frozen=True, slots=True)
class Escalations:
    """The sessions' escalated questions over a store. Methods raise StoreDown."""

    store: KeyValueStore

    async def of(self, key: Key) -> list[Escalated]:
        """What the session has, oldest first."""
        data = await self.store.get(_place(key))
        try:
            return [Escalated(**one) for one in json.loads(data)] if data else []
        except (ValueError, TypeError):
            return []

    async def add(
        self,
        ask: Ask,
        key: Key,
        answer: CachedAnswer,
        vector: Values | None,
        bounds: tuple[int, float],
    ) -> None:
        """Adds one; of more than `bounds[0]` the oldest go. Kept for `bounds[1]` seconds."""
        messages = ask.request.messages
        packed = (
            base64.b64encode(vector.astype(np.float32).tobytes()).decode()
            if vector is not None
            else ""
        )
        one = Escalated(
            frame=key.frame,
            before=key.before(len(messages) - 1),
            turns=len(messages),
            question=messages[-1].content,
            vector=packed,
            answer=answer.dump().decode(),
        )
        most, ttl_s = bounds
        kept = [*await self.of(key), one][-most:]
        data = json.dumps([asdict(each) for each in kept], ensure_ascii=False).encode()
        await self.store.put(_place(key), data, ttl_s)


def _place(key: Key) -> str:
    return f"escalated:{key.session}"
