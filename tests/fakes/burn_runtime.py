"""A runtime without a model that really keeps the CPU busy, and text to go with it.

Answers are deterministic: each letter follows from everything that is in the row, so
that a row mixed up with another shows in the text. A prompt that holds `[[say:…]]`
is answered with exactly that.
"""

from __future__ import annotations

import codecs
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from llguidance import LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from services.common.settings import Settings
from services.edge_worker.chat_template import Turn
from services.edge_worker.grammar import GrammarCompiler
from services.edge_worker.held import FREE, ModelForms
from services.edge_worker.model import LoadedModel
from services.edge_worker.runtime.base import KvPool, Logits, ModelInfo

BOS = 256
EOS = 257
VOCAB = 258
_LETTERS = b"etaoin shrdlu"
_MODULUS = 2_147_483_647
_SAY = re.compile(rb"\[\[say:(.*?)\]\]", re.DOTALL)


class BurnSettings(Settings):
    """Environment prefix of `tests.fakes.edge_main`: `TANDEM_FAKE_EDGE__`."""

    decode_ms: float = 5.0
    """Of one decode step."""
    decode_row_ms: float = 0.0
    """More for each row."""
    prefill_token_ms: float = 0.1
    warm_ms: float = 0.0
    answer_tokens: int = 32
    """Letters of an answer before its end token; 0: endless."""
    token_repeat: int = 1
    """Letters of text that one token stands for."""
    peak: float = 10.0
    """Logit of the chosen token; the others have 0, so this sets the confidence."""
    context_tokens: int = 8_192
    kv_bytes_per_token: int = 1_024
    burn: bool = True
    """False: sleep instead, for tests that only need the time."""
    fail_on: str = ""
    """A prompt that holds this makes its prefill raise."""
    hold_forms: bool = True
    """False: answers ignore labels, schemas and expressions, so that a judge has work."""


@dataclass(eq=False)
class BurnPool:
    """Rows of rolling hashes instead of keys and values."""

    slots: int
    max_tokens: int
    bytes_per_token: int
    hashes: NDArray[np.int64] = field(init=False)
    prompt_tokens: list[int] = field(init=False)
    scripts: list[bytes | None] = field(init=False)
    text: bytes = b""

    def __post_init__(self) -> None:
        rows = self.slots + 1
        self.hashes = np.zeros((rows, self.max_tokens), dtype=np.int64)
        self.prompt_tokens = [0] * rows
        self.scripts = [None] * rows

    @property
    def bytes(self) -> int:
        """As if keys and values were there."""
        return (self.slots + 1) * self.max_tokens * self.bytes_per_token


class BurnRuntime:
    """Implements `services.edge_worker.runtime.base.Runtime`."""

    def __init__(self, settings: BurnSettings) -> None:
        self._settings = settings
        self._info = ModelInfo(
            model_id="fake-burn-1",
            name="burn",
            provider="CPUExecutionProvider",
            context_tokens=settings.context_tokens,
            vocab_size=VOCAB,
            eos_ids=frozenset({EOS}),
            kv_bytes_per_token=settings.kv_bytes_per_token,
        )
        self._matrix = np.random.default_rng(0).random((256, 256), dtype=np.float32)

    @property
    def info(self) -> ModelInfo:
        return self._info

    def new_pool(self, slots: int, max_tokens: int) -> BurnPool:
        return BurnPool(slots, max_tokens, self._info.kv_bytes_per_token)

    def prefill(self, pool: KvPool, row: int, tokens: Sequence[int], past: int) -> Logits:
        mine = _own(pool)
        if not tokens or past + len(tokens) > mine.max_tokens:
            raise ValueError(f"{len(tokens)} tokens after {past}")
        self._burn(self._settings.prefill_token_ms * len(tokens))
        self._note(mine, row, tokens, past)
        for offset, token in enumerate(tokens):
            self._put(mine, row, past + offset, token)
        return self._logits(mine, row, past + len(tokens))

    def decode(self, pool: KvPool, tokens: NDArray[np.int64], past: NDArray[np.int32]) -> Logits:
        mine = _own(pool)
        if not 1 <= len(tokens) <= mine.slots or past.max() >= mine.max_tokens:
            raise ValueError(f"{len(tokens)} rows, past {past}")
        self._burn(self._settings.decode_ms + self._settings.decode_row_ms * len(tokens))
        for row, (token, at) in enumerate(zip(tokens, past, strict=True)):
            self._put(mine, row, int(at), int(token))
        ends = [int(at) + 1 for at in past]
        return np.stack([self._logits(mine, row, end) for row, end in enumerate(ends)])

    def copy_row(self, pool: KvPool, src: int, dst: int, tokens: int) -> None:
        mine = _own(pool)
        mine.hashes[dst, :tokens] = mine.hashes[src, :tokens]
        mine.hashes[dst, tokens:] = -1
        mine.prompt_tokens[dst] = mine.prompt_tokens[src]
        mine.scripts[dst] = mine.scripts[src]

    def warm(self, pool: KvPool) -> None:
        _own(pool)
        self._burn(self._settings.warm_ms)

    def close(self) -> None:
        pass

    def _note(self, pool: BurnPool, row: int, tokens: Sequence[int], past: int) -> None:
        text = bytes(token for token in tokens if token < BOS)
        pool.text = text if past == 0 else pool.text + text
        if self._settings.fail_on and self._settings.fail_on.encode() in text:
            raise RuntimeError("asked to fail")
        said = _SAY.findall(pool.text)
        pool.scripts[row] = said[-1] if said else None
        pool.prompt_tokens[row] = past + len(tokens)

    def _put(self, pool: BurnPool, row: int, at: int, token: int) -> None:
        before = int(pool.hashes[row, at - 1]) if at else 7
        pool.hashes[row, at] = (before * 31 + token + 1) % _MODULUS

    def _logits(self, pool: BurnPool, row: int, end: int) -> Logits:
        logits = np.zeros(VOCAB, dtype=np.float32)
        logits[self._next(pool, row, end)] = self._settings.peak
        return logits

    def _next(self, pool: BurnPool, row: int, end: int) -> int:
        place, script = end - pool.prompt_tokens[row], pool.scripts[row]
        if script is not None:
            return script[place] if place < len(script) else EOS
        if self._settings.answer_tokens and place >= self._settings.answer_tokens:
            return EOS
        return _LETTERS[int(pool.hashes[row, end - 1]) % len(_LETTERS)]

    def _burn(self, ms: float) -> None:
        if not self._settings.burn:
            time.sleep(ms / 1000.0)
            return
        until = time.perf_counter() + ms / 1000.0
        other = threading.Thread(target=self._multiply, args=(until,))
        other.start()  # a thread for the second core, whatever numpy was built with
        self._multiply(until)
        other.join()

    def _multiply(self, until: float) -> None:
        while time.perf_counter() < until:
            self._matrix @ self._matrix


class BytePrompts:
    """One token a byte; turns are marked by their role and a line feed."""

    def build(self, turns: Sequence[Turn], system: str = "") -> list[int]:
        text = "".join(f"{turn.role}: {turn.text}\n" for turn in turns)
        return [BOS, *f"{system}\n{text}".encode()]


class ByteDecoder:
    """One byte a token, whole characters only, each `repeat` times."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(bytes([token])) * self._repeat if token < BOS else ""


class _ByteVocabulary:
    """What llguidance asks of a vocabulary: one token a byte, and the two control tokens."""

    eos_token_id = EOS
    bos_token_id = BOS
    tokens = (*(bytes([byte]) for byte in range(256)), b"<bos>", b"<eos>")
    special_token_ids = (BOS, EOS)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


def byte_forms() -> ModelForms:
    """The real compiler over the fake's vocabulary."""
    vocabulary = LLTokenizer(TokenizerWrapper(_ByteVocabulary()), n_vocab=VOCAB)
    return ModelForms(lambda text: list(text.encode()), GrammarCompiler(vocabulary, {EOS}), {EOS})


def burn_model(settings: BurnSettings) -> LoadedModel:
    """A model for `EdgeApp` that needs no files."""
    return LoadedModel(
        runtime=BurnRuntime(settings),
        prompts=BytePrompts(),
        encode=lambda text: list(text.encode()),
        compile_form=byte_forms() if settings.hold_forms else lambda _: FREE,
        new_decoder=lambda: ByteDecoder(settings.token_repeat),
    )


def _own(pool: KvPool) -> BurnPool:
    if not isinstance(pool, BurnPool):
        raise TypeError("not a pool of this runtime")
    return pool
