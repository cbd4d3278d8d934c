"""The edge model on ONNX Runtime: one session, many pools, no copies of the cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from services.common.weights.errors import CorruptModel
from services.edge_worker.kit.manifest import Manifest, check_files, read_manifest
from services.edge_worker.kit.store import MODEL_FILE
from services.edge_worker.runtime.base import KvPool, Logits, ModelInfo
from services.edge_worker.runtime.pool import OnnxPool, bind_input, bind_output
from services.edge_worker.runtime.session import OnnxOptions, open_session

__all__ = ["OnnxOptions", "OnnxRuntime"]


class OnnxRuntime:
    """Implements `Runtime` with IO binding.

    Past and present of GroupQueryAttention are bound to the same rows of a pool, so a
    step writes only the new positions. Building a binding costs 0.8 ms: pools keep them.
    """

    def __init__(self, session: ort.InferenceSession, manifest: Manifest) -> None:
        """Takes an open session; use `load`."""
        self._session: ort.InferenceSession | None = session
        self._manifest = manifest
        self._info = ModelInfo(
            model_id=manifest.model_id,
            name=manifest.name,
            provider=session.get_providers()[0],
            context_tokens=manifest.context_tokens,
            vocab_size=manifest.vocab_size,
            eos_ids=frozenset(manifest.eos_ids),
            kv_bytes_per_token=manifest.kv.bytes_per_token,
        )

    @classmethod
    def load(cls, model_dir: Path, options: OnnxOptions, *, check_hashes: bool = False) -> Self:
        """Opens a built model.

        Args:
            model_dir: Folder with `manifest.json`.
            options: How to run it.
            check_hashes: Also compare contents with the manifest (0.2 s for `q8`).

        Raises:
            ModelNotBuilt: No manifest there.
            CorruptModel: Files contradict the manifest or cannot be loaded.
            ProviderUnavailable: A provider asked for is not there.
        """
        manifest = read_manifest(model_dir)
        check_files(manifest, model_dir, hashes=check_hashes)
        session = open_session(model_dir / MODEL_FILE, options)
        _check_signature(session, manifest)
        return cls(session, manifest)

    @property
    def info(self) -> ModelInfo:
        """Facts of the loaded model."""
        return self._info

    def new_pool(self, slots: int, max_tokens: int) -> OnnxPool:
        """See `Runtime.new_pool`."""
        if slots < 1 or not 1 <= max_tokens <= self._info.context_tokens:
            raise ValueError(
                f"a pool of {slots} slots of {max_tokens} tokens: need at least 1 slot and "
                f"1..{self._info.context_tokens} tokens"
            )
        return OnnxPool(
            self._open_session(), self._manifest.kv, self._info.vocab_size, slots, max_tokens
        )

    def prefill(self, pool: KvPool, row: int, tokens: Sequence[int], past: int) -> Logits:
        """See `Runtime.prefill`."""
        mine = _own(pool)
        ids = np.array([tokens], dtype=np.int64)
        self._check_prefill(mine, row, ids, past)
        binding = mine.prefill_binding(row)
        bind_input(binding.io, "input_ids", ids)
        end = past + ids.size
        mine.past[row] = end - 1
        mine.total[...] = end
        mine.last[0] = ids.size - 1
        self._open_session().run_with_iobinding(binding.io)
        logits: Logits = binding.logits[0]
        return logits

    def decode(self, pool: KvPool, tokens: NDArray[np.int64], past: NDArray[np.int32]) -> Logits:
        """See `Runtime.decode`."""
        mine = _own(pool)
        self._check_decode(mine, tokens, past)
        batch = len(tokens)
        binding = mine.decode_binding(batch)
        mine.tokens[:batch, 0] = tokens
        mine.past[:batch] = past
        mine.total[...] = past.max() + 1
        self._open_session().run_with_iobinding(binding.io)
        return binding.logits

    def score(self, tokens: Sequence[int]) -> Logits:
        """Logits `[len(tokens), vocab]` after every token, for verification.

        Makes its own buffers of 200 KB a token; not for serving.

        Raises:
            ValueError: No tokens, more than the context, or an id out of range.
        """
        ids = np.array([tokens], dtype=np.int64)
        pool = self.new_pool(1, ids.size)
        self._check_prefill(pool, 0, ids, 0)
        logits = np.empty((ids.size, self._info.vocab_size), dtype=np.float32)
        io = pool.prefill_binding(0).io
        positions = np.arange(ids.size)
        bind_input(io, "input_ids", ids)
        bind_input(io, "logit_rows", positions)
        bind_output(io, "logits", logits)
        pool.past[0] = ids.size - 1
        pool.total[...] = ids.size
        self._open_session().run_with_iobinding(io)
        return logits

    def copy_row(self, pool: KvPool, src: int, dst: int, tokens: int) -> None:
        """See `Runtime.copy_row`."""
        mine = _own(pool)
        if not (0 <= src <= mine.slots and 0 <= dst <= mine.slots):
            raise ValueError(f"rows {src} and {dst}: the pool has 0..{mine.slots}")
        if not 0 <= tokens <= mine.max_tokens:
            raise ValueError(f"{tokens} tokens: a row holds {mine.max_tokens}")
        mine.cache[:, :, dst, :, :tokens] = mine.cache[:, :, src, :, :tokens]

    def warm(self, pool: KvPool) -> None:
        """See `Runtime.warm`; leaves garbage in position 0, which no one has filled yet."""
        mine = _own(pool)
        self.prefill(mine, mine.slots, [0], 0)
        for batch in range(1, mine.slots + 1):
            self.decode(mine, np.zeros(batch, np.int64), np.zeros(batch, np.int32))

    def close(self) -> None:
        """See `Runtime.close`; pools still in use keep the weights alive."""
        self._session = None

    def _open_session(self) -> ort.InferenceSession:
        if self._session is None:
            raise RuntimeError("the runtime is closed")
        return self._session

    def _check_prefill(self, pool: OnnxPool, row: int, ids: NDArray[np.int64], past: int) -> None:
        if not 0 <= row <= pool.slots:
            raise ValueError(f"row {row}: the pool has 0..{pool.slots}")
        if ids.size == 0 or past < 0 or past + ids.size > pool.max_tokens:
            raise ValueError(
                f"{ids.size} tokens after {past}: a row takes 1..{pool.max_tokens} together"
            )
        self._check_ids(ids)

    def _check_decode(
        self, pool: OnnxPool, tokens: NDArray[np.int64], past: NDArray[np.int32]
    ) -> None:
        if tokens.ndim != 1 or tokens.shape != past.shape or not 1 <= len(tokens) <= pool.slots:
            raise ValueError(
                f"tokens {tokens.shape} and past {past.shape}: need one shape [B], "
                f"B in 1..{pool.slots}"
            )
        if past.min() < 0 or past.max() >= pool.max_tokens:
            raise ValueError(f"a row has {past.max()} of {pool.max_tokens} positions: it is full")
        self._check_ids(tokens)

    def _check_ids(self, ids: NDArray[np.int64]) -> None:
        if ids.min() < 0 or ids.max() >= self._info.vocab_size:
            raise ValueError(f"a token id is outside 0..{self._info.vocab_size - 1}")


def _own(pool: KvPool) -> OnnxPool:
    if not isinstance(pool, OnnxPool):
        raise TypeError(f"{type(pool).__name__} was not made by this runtime")
    return pool


def _check_signature(session: ort.InferenceSession, manifest: Manifest) -> None:
    names = {value.name for value in session.get_inputs()}
    wanted = {"input_ids", "seqlens_k", "total_sequence_length", "logit_rows"}
    wanted |= {f"past.{i}.{kind}" for i in range(manifest.kv.layers) for kind in ("key", "value")}
    if names != wanted:
        raise CorruptModel(f"the graph's inputs contradict its manifest: {sorted(names ^ wanted)}")
