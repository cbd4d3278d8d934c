"""One thread for blocking work, which a store that hangs cannot hold the process by."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_Job = tuple[Callable[[], Any], "Future[Any]"]


class Lane:
    """Does what it is given, one after the other.

    The thread is a daemon: an executor's would be waited for at exit, for ever where the
    database hangs.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._overdue: Future[Any] | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._started = False

    async def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """The result of `work`, done in the thread.

        Raises:
            TimeoutError: It took longer; it may still end. Or an earlier one has not ended.
        """
        if self._overdue is not None and not self._overdue.done():
            raise TimeoutError
        self._overdue = None
        if not self._started:
            self._started = True
            self._thread.start()
        future: Future[T] = Future()
        self._jobs.put((work, future))
        # wait() and not wait_for(): what runs already must not count as cancelled.
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(_seen)
        await asyncio.wait({waiting}, timeout=timeout_s)
        if not future.done():
            if not future.cancel():
                self._overdue = future
            raise TimeoutError
        return future.result()

    def close(self, last: Callable[[], object] | None = None) -> None:
        """Ends the thread after its last job, and after `last` where it gets that far."""
        if last is not None:
            self._jobs.put((last, Future()))
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as exc:  # it is raised where it is awaited
                future.set_exception(exc)


def _seen(future: asyncio.Future[Any]) -> None:
    """What fails after its time is up is nobody's to hear of."""
    if not future.cancelled():
        future.exception()
