"""Texts of many callers in one call of the embedder."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from services.common.deadline import Budget
from services.common.embedding.runner import Vector
from services.common.errors import DeadlineExceeded, EngineFailed, QueueFull
from services.edge_worker.config import EmbedSettings

_log = structlog.get_logger()
_RETRY_MS: Final = 50
_Waiting = tuple[str, "asyncio.Future[Vector]"]


class EmbedBatcher:
    """Lives on the event loop; the model runs on a thread of its own.

    Args:
        embed: Vectors of texts; blocks.
        model_id: Of the embedder.
        settings: Batch and queue.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[str]], list[Vector]],
        model_id: str,
        settings: EmbedSettings,
    ) -> None:
        self.model_id = model_id
        self._embed = embed
        self._settings = settings
        self._waiting: deque[_Waiting] = deque()
        self._filled = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="edge-embed")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to take batches."""
        self._task = asyncio.create_task(self._main())

    async def stop(self) -> None:
        """Ends after the batch that is under way; what waits fails."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, future in self._waiting:
            future.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def embed(self, texts: Sequence[str], budget: Budget) -> list[Vector]:
        """Vectors in the order of the texts.

        Raises:
            QueueFull: Too many texts wait already.
            DeadlineExceeded: The budget passed before.
            EngineFailed: The model failed.
        """
        if len(self._waiting) + len(texts) > self._settings.max_queue:
            raise QueueFull(
                f"{len(self._waiting)} texts wait for the embedder already",
                retry_after_ms=_RETRY_MS,
            )
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Vector]] = [loop.create_future() for _ in texts]
        self._waiting.extend(zip(texts, futures, strict=True))
        self._filled.set()
        try:
            async with asyncio.timeout(budget.remaining_ms(time.monotonic()) / 1000.0):
                return list(await asyncio.gather(*futures))
        except TimeoutError as exc:
            raise DeadlineExceeded("the deadline passed before the vectors were made") from exc
        finally:
            for future in futures:
                future.cancel()

    async def _main(self) -> None:
        while True:
            await self._first()
            await self._others()
            await self._run(self._take())

    async def _first(self) -> None:
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()

    async def _others(self) -> None:
        """The clock starts at the first text."""
        try:
            async with asyncio.timeout(self._settings.max_wait_ms / 1000.0):
                while len(self._waiting) < self._settings.max_batch_size:
                    self._filled.clear()
                    await self._filled.wait()
        except TimeoutError:
            pass

    def _take(self) -> list[_Waiting]:
        """The next texts, but those whose caller has left."""
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < self._settings.max_batch_size:
            text, future = self._waiting.popleft()
            if not future.done():
                batch.append((text, future))
        return batch

    async def _run(self, batch: Sequence[_Waiting]) -> None:
        if not batch:
            return
        texts, futures = zip(*batch, strict=True)
        try:
            loop = asyncio.get_running_loop()
            vectors = await loop.run_in_executor(self._pool, self._embed, texts)
        except Exception:
            _log.exception("embed_failed", texts=len(texts))
            for future in futures:
                if not future.done():
                    future.set_exception(EngineFailed("the embedder failed on this batch"))
            return
        for future, vector in zip(futures, vectors, strict=True):
            if not future.done():
                future.set_result(vector)
