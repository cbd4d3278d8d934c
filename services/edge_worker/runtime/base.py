"""What the engine needs from a runtime: pools of KV rows, prefill, decode.

The engine owns scheduling and calls a runtime from one thread per pool; a runtime
owns the weights and knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the rest of the worker may know of a loaded model.

    Attributes:
        model_id: Hash of source weights, builder version and recipe; calibrators bind to it.
        name: Human-readable name, never a label with unbounded values.
        provider: Execution provider that really runs it, e.g. `CPUExecutionProvider`.
        context_tokens: Longest sequence, prompt and answer together.
        vocab_size: Length of a row of logits.
        eos_ids: Tokens that end an answer.
        kv_bytes_per_token: Cache of one position over all layers, keys and values.
    """

    model_id: str
    name: str
    provider: str
    context_tokens: int
    vocab_size: int
    eos_ids: frozenset[int]
    kv_bytes_per_token: int


class KvPool(Protocol):
    """KV cache of one lane: `slots` rows for decoding and one spare for prefill.

    Decoding uses rows 0..B-1, so the engine keeps running sequences dense: the row
    that leaves is filled by the last one (`Runtime.copy_row`). Row `slots` is the
    spare one, for the sequence being prefilled.
    """

    @property
    def slots(self) -> int:
        """Rows usable for decoding; the spare row has this index."""
        ...

    @property
    def max_tokens(self) -> int:
        """Positions one row holds."""
        ...

    @property
    def bytes(self) -> int:
        """Size when every position has been touched, the spare row included."""
        ...


class Runtime(Protocol):
    """One set of weights, any number of pools.

    Calls are synchronous and long (milliseconds): never from an event loop. Calls on
    different pools may run at the same time from different threads; calls on one
    pool may not. A pool may only be given to the runtime that made it (`TypeError`).
    """

    @property
    def info(self) -> ModelInfo:
        """Facts of the loaded model."""
        ...

    def new_pool(self, slots: int, max_tokens: int) -> KvPool:
        """Makes a pool; memory is touched lazily, `warm` touches what a step needs.

        Raises:
            ValueError: `slots` or `max_tokens` below 1, or `max_tokens` above the
                model's context.
        """
        ...

    def prefill(self, pool: KvPool, row: int, tokens: Sequence[int], past: int) -> Logits:
        """Computes one chunk of a prompt into `row`, after `past` positions of it.

        A prompt may come in any chunks: the result is that of a single prefill up
        to rounding.

        Args:
            pool: The pool.
            row: 0..slots, the spare row included.
            tokens: The chunk, at least one token.
            past: Positions of the row that are already filled.

        Returns:
            Logits `[vocab]` of the chunk's last token. The array is the runtime's own
            buffer, valid until the next call on this pool: copy what must outlive it.

        Raises:
            ValueError: Empty chunk, row out of range, token id out of range or
                `past + len(tokens) > max_tokens`.
        """
        ...

    def decode(self, pool: KvPool, tokens: NDArray[np.int64], past: NDArray[np.int32]) -> Logits:
        """Advances rows 0..B-1 by one token each.

        Rows of any lengths may go together. A row's result does not depend on who shares
        the batch: the `q8` recipe gives the same bits on a CPU, others the same up to
        rounding.

        Args:
            pool: The pool.
            tokens: `[B]`, the newest token of each row, 1 <= B <= slots.
            past: `[B]`, positions already filled in each row.

        Returns:
            Logits `[B, vocab]`, the runtime's own buffer, valid until the next call on
            this pool.

        Raises:
            ValueError: Shapes differ, B out of range, or a row is full.
        """
        ...

    def copy_row(self, pool: KvPool, src: int, dst: int, tokens: int) -> None:
        """Copies the first `tokens` positions of row `src` over those of row `dst`."""
        ...

    def warm(self, pool: KvPool) -> None:
        """Runs every batch size once, so that no request pays for a first time."""
        ...

    def close(self) -> None:
        """Frees the weights; later calls raise. May be called twice."""
        ...
